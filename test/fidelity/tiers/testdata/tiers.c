// A JIT for objects of llc: it loads and unloads versions of the function work, several of which are on its stack at once. Commands, one per line:
//
//   l SLOT FILE     load an object into a slot, whose address is always the same
//   u SLOT          unregister it and unmap its code
//   r SLOT...       call work of these slots, each from the one before; the innermost prints the log and waits for a line
//
// The log has a line for each activation, outermost first: the values that work stored into its cells before it called next.
#define _GNU_SOURCE
#include "gdbjit.h"
#include "load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SLOTS = 8, CELLS = 5, DEPTH = 16 };
enum { SLOT_SIZE = 1 << 20 };
static char *space; // of the slots

int64_t cells[CELLS];
static struct slot { struct jit_code_entry entry; void *object; int64_t (*work)(int64_t); } slots[SLOTS];
static int64_t logged[DEPTH][CELLS];
static int depth, wanted, order[DEPTH];

static _Noreturn void die(const char *what) { perror(what); exit(1); }

static int64_t next(int64_t a) {
  memcpy(logged[depth++], cells, sizeof cells);
  if (depth < wanted) {
    int64_t r = slots[order[depth]].work(a * 3 + depth);
    return r + 1;
  }
  for (int d = 0; d < depth; d++) {
    printf("%d", order[d]);
    for (int c = 0; c < CELLS; c++) printf(" %ld", (long)logged[d][c]);
    puts("");
  }
  puts("waits");
  fflush(stdout);
  char line[16];
  if (!fgets(line, sizeof line, stdin)) exit(0);
  return a;
}

static uint64_t resolve(const char *name) {
  if (!strncmp(name, "cell", 4)) return (uint64_t)&cells[atoi(name + 4)];
  return strcmp(name, "next") ? 0 : (uint64_t)next;
}

static void load_slot(int n, const char *path) {
  FILE *f = fopen(path, "rb");
  if (!f || fseek(f, 0, SEEK_END)) die(path);
  size_t size = ftell(f);
  rewind(f);
  struct slot *s = &slots[n];
  s->object = malloc(size);
  if (!s->object || fread(s->object, 1, size, f) != size) die(path);
  fclose(f);
  if (lay_out(s->object, 4096).offset[GROUPS] > SLOT_SIZE) die("too large");
  char *memory = mmap(space + n * SLOT_SIZE, SLOT_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (memory == MAP_FAILED) die("mmap");
  int failed = load(s->object, memory, resolve);
  if (failed) { fprintf(stderr, "relocation %d\n", failed); exit(1); }
  if (mprotect(memory, SLOT_SIZE, PROT_READ | PROT_EXEC)) die("mprotect");
  s->work = (int64_t(*)(int64_t))function_address(s->object, "work");
  s->entry.symfile_addr = s->object;
  s->entry.symfile_size = size;
  jit_register(&s->entry);
}

static void unload_slot(int n) {
  struct slot *s = &slots[n];
  struct jit_code_entry *e = &s->entry;
  if (e->prev) e->prev->next = e->next;
  else __jit_debug_descriptor.first_entry = e->next;
  if (e->next) e->next->prev = e->prev;
  __jit_debug_descriptor.relevant_entry = e;
  __jit_debug_descriptor.action_flag = 2; // JIT_UNREGISTER_FN
  __jit_debug_register_code();
  munmap(space + n * SLOT_SIZE, SLOT_SIZE);
  free(s->object);
}

// Reserves the slots near the program, which is linked at 0x400000: calls reach 2 GiB. The heap begins anywhere in the first of them.
static void reserve(void) {
  for (uintptr_t at = 0x10000000; at < 0x70000000; at += SLOTS * SLOT_SIZE) {
    space = mmap((void *)at, SLOTS * SLOT_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (space != MAP_FAILED) return;
  }
  die("no room for the slots");
}

int main(void) {
  reserve();
  char line[4096];
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    char *word = strtok(line, " ");
    int n = 0;
    for (char *w; (w = strtok(NULL, " "));) {
      if (*word == 'l' && n == 1) load_slot(order[0], w);
      else if (n < DEPTH) order[n] = atoi(w);
      n++;
    }
    if (*word == 'u') unload_slot(order[0]);
    if (*word == 'r') {
      depth = 0, wanted = n;
      int64_t r = slots[order[0]].work(5);
      printf("returned %ld\n", (long)r);
      fflush(stdout);
    }
  }
}
