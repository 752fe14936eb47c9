// manyobjects OBJECT N [idle|compile]: a host with N in-memory objects in its list for the GDB JIT interface, all copies of one
// object file that llc made of programs/host_mod.ll, each loaded into a page of its own. It calls the code of the
// middle one, which calls back; there it waits in pause with that one JIT frame on the stack. With idle it waits in pause and has called none;
// another thread, which has ended, loaded the objects, so that no word of the stack that remains points into one.
// With compile another thread keeps registering the first object, up to a million times, like a JIT that compiles all the time.
//
// Built with -I demo/target.
#include "gdbjit.h"
#include "load.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

static int64_t cb(int64_t a, int64_t b) {
  puts("ready");
  fflush(stdout);
  for (;;) pause();
  return a - b;
}

static void *compiles(void *object) {
  enum { MOST = 1000000 };
  struct jit_code_entry *more = calloc(MOST, sizeof *more);
  for (int i = 0; more && i < MOST; i++) {
    more[i].symfile_addr = ((struct jit_code_entry *)object)->symfile_addr;
    more[i].symfile_size = ((struct jit_code_entry *)object)->symfile_size;
    jit_register(&more[i]);
    usleep(100);
  }
  return NULL;
}

static uint64_t resolve(const char *name) { return strcmp(name, "cb") ? 0 : (uint64_t)cb; }

static _Noreturn void die(const char *what) {
  fprintf(stderr, "manyobjects: %s: %s\n", what, strerror(errno));
  exit(1);
}

static void *read_file(const char *name, size_t *size) {
  FILE *f = fopen(name, "rb");
  if (!f || fseek(f, 0, SEEK_END)) die(name);
  *size = ftell(f);
  rewind(f);
  void *content = malloc(*size);
  if (!content || fread(content, 1, *size, f) != *size) die(name);
  fclose(f);
  return content;
}

static const char *file;               // the object file
static size_t n;                       // the number of loaded copies
static struct jit_code_entry *entries; // of all copies

static void *load_all(void *unused) {
  size_t size;
  void *original = read_file(file, &size);
  // Code and data of an object share its page: with one mapping each, 20,000 objects would exceed the kernel's limit of 65,530 mappings.
  if (lay_out(original, 16).offset[GROUPS] > PAGE) { fputs("manyobjects: the object needs more than a page\n", stderr); exit(1); }
  char *memory = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  entries = calloc(n, sizeof *entries);
  if (memory == MAP_FAILED || !entries) die("memory");
  for (size_t i = 0; i < n; i++) {
    void *object = malloc(size);
    if (!object) die("memory");
    memcpy(object, original, size);
    if (load(object, memory + i * PAGE, resolve)) { fputs("manyobjects: the object cannot be relocated\n", stderr); exit(1); }
    entries[i].symfile_addr = object;
    entries[i].symfile_size = size;
    jit_register(&entries[i]);
  }
  if (mprotect(memory, n * PAGE, PROT_READ | PROT_EXEC)) die("mprotect");
  return unused;
}

int main(int argc, char **argv) {
  if (argc < 3 || argc > 4 || atol(argv[2]) < 1) { fputs("usage: manyobjects OBJECT N [idle|compile]\n", stderr); return 64; }
  file = argv[1];
  n = atol(argv[2]);
  pthread_t thread;
  if (argc == 4 && !strcmp(argv[3], "idle")) {
    if (pthread_create(&thread, NULL, load_all, NULL) || pthread_join(thread, NULL)) die("a thread");
    cb(0, 0);
  }
  load_all(NULL);
  void *middle = (void *)entries[n / 2].symfile_addr;
  int64_t (*jf)(int64_t, int64_t, double) = (int64_t(*)(int64_t, int64_t, double))function_address(middle, "jf");
  if (!jf) { fputs("manyobjects: the object has no function jf\n", stderr); return 1; }
  if (argc == 4 && pthread_create(&thread, NULL, compiles, &entries[0])) die("a thread");
  printf("%ld\n", jf(1000, 7, 2.5));
}
