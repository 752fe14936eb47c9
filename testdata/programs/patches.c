// A runtime that patches compiled code while threads run through it, and logs which thread reaches which patched site with which values.
// patches.ll has the code, compiled ahead of time or by lli, and calls patches() with the table of its sites.
//
//	PROGRAM [THREADS]
//
// prints "ready", and then executes commands, one per line, from standard input; it answers on descriptor 3. Meanwhile THREADS threads (16) call
// random functions of the table and check the results. The commands:
//
//	sites                        a line for each site: its number, function, record, kind, address, length and, in hex, its bytes
//	protect P                    from now on patched pages are left with this protection: 5 (r-x) or 7 (rwx)
//	patch [SITE KIND FILL OFF].. overwrites sites. Only waiting threads are in them. Answers "patched", or "refused" and the reason
//	restore [SITE]..             removes patches; without a number, all. Answers "restored"
//	land T SITE WHAT             thread T must call the function of a site and wait in its callee: WHAT is p, the runtime that the patch
//	                             calls, or o, @ordinary. Threads without such an order never wait
//	wait                         waits until all threads with orders wait there, and answers a line for each, and "end"
//	release                      they continue. Answers "released"
//	quit                         ends all. Answers "runs", the number of calls of functions, "calls", the number of calls by patched sites,
//	                             and "wrong", the number of wrong results
//
// KIND is how the patch reaches the runtime: rel32 (call rel32), mem (call through memory), reg (through r11), rax; stub and push (a jump to a
// stub that calls; push leaves 8 bytes on the stack, like stubs that pass a number), indirect (a jump through memory to such a stub). FILL selects
// the bytes before OFF: n, nops; k, they are kept, and run. Bytes after the patch are kept in shadows, to which no call returns, and nops elsewhere.
//
// A line of wait: thread, tid, p or o, function, record, the site's kind, patch's kind, FILL, OFF, return address, then name=value for each live
// value.
//
//	PROGRAM THREADS SEED EVENTS
//
// needs no commands: it prints "ready", waits for a line or the end of its standard input, and patches sites and removes patches, EVENTS times at
// random, while the threads run. At the end it prints "record ID COUNT" for each record that was called, and "wrong" with the number of wrong
// results. Its last line is "done".
#define _GNU_SOURCE
#include <elf.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MAX_SITES = 64, MAX_THREADS = 64, MAX_REGION = 64, PAGE = 4096 };

enum site_kind { STACKMAP, PATCHPOINT, STATEPOINT };

// given is an entry of the table in patches.ll.
struct given {
  int64_t (*function)(int64_t, int64_t);
  const char *name;
  int64_t id, kind, bytes, values, ordinary;
};

struct site {
  const struct given *given;
  uint8_t *start; // the bytes that may be patched
  uint8_t original[MAX_REGION], *stub;
  atomic_int closed, patched; // closed: no thread may enter its function. patched counts patches, and is 0 for none
  const struct patch_kind *kind;
  char fill;
  int offset;
};

struct thread {
  pthread_t thread;
  int number;
  pid_t tid;
  uint64_t random, *leave; // leave: the stack pointer of call_site
  int64_t a, b, iteration;
  atomic_int in;   // 1 + the site whose function it calls
  atomic_int goal; // 1 + the site where it is to wait
  atomic_int ordinary, landed, released;
  atomic_long runs, calls, wrong;
  char line[1024];
};

static struct site sites[MAX_SITES];
static int site_count, thread_count = 16, protection = PROT_READ | PROT_EXEC, patches_made, answers = -1;
static struct thread threads[MAX_THREADS];
static atomic_int landings, leaving;
static atomic_long called[MAX_SITES];
static __thread struct thread *self;
static uint8_t *near; // memory that the code can reach: a stub of 64 bytes for each site, then what follows
static struct {
  uint8_t thunk[16]; // jmp *runtime
  uint64_t runtime, stub[MAX_SITES];
} *reach;

static _Noreturn void die(const char *what) {
  perror(what);
  _exit(1);
}

// call_site calls a function. Patched sites call runtime, which saves all registers as its unwind information describes, and calls landed(), which
// decides how to continue: return, or leave the patched function and return to call_site.
int64_t call_site(int64_t (*f)(int64_t, int64_t), int64_t a, int64_t b, uint64_t **leave);
void runtime(void);
struct way {
  int64_t value;
  uint64_t *leave;
};
__attribute__((used, visibility("hidden"))) struct way landed(uint8_t *ret);
__asm__(".pushsection .text\n"
        ".globl call_site, runtime\n"
        ".hidden call_site, runtime\n"
        ".type call_site, @function\n"
        ".type runtime, @function\n"
        "call_site:\n"
        "  .cfi_startproc\n"
        "  push %rbp\n  .cfi_adjust_cfa_offset 8\n  .cfi_rel_offset %rbp, 0\n"
        "  push %rbx\n  .cfi_adjust_cfa_offset 8\n  .cfi_rel_offset %rbx, 0\n"
        "  push %r12\n  .cfi_adjust_cfa_offset 8\n  .cfi_rel_offset %r12, 0\n"
        "  push %r13\n  .cfi_adjust_cfa_offset 8\n  .cfi_rel_offset %r13, 0\n"
        "  push %r14\n  .cfi_adjust_cfa_offset 8\n  .cfi_rel_offset %r14, 0\n"
        "  push %r15\n  .cfi_adjust_cfa_offset 8\n  .cfi_rel_offset %r15, 0\n"
        "  push %rax\n  .cfi_adjust_cfa_offset 8\n"
        "  mov %rsp, (%rcx)\n"
        "  mov %rdi, %rax\n"
        "  mov %rsi, %rdi\n"
        "  mov %rdx, %rsi\n"
        "  call *%rax\n"
        ".Lback:\n"
        "  pop %rdx\n  .cfi_adjust_cfa_offset -8\n"
        "  pop %r15\n  .cfi_adjust_cfa_offset -8\n  .cfi_restore %r15\n"
        "  pop %r14\n  .cfi_adjust_cfa_offset -8\n  .cfi_restore %r14\n"
        "  pop %r13\n  .cfi_adjust_cfa_offset -8\n  .cfi_restore %r13\n"
        "  pop %r12\n  .cfi_adjust_cfa_offset -8\n  .cfi_restore %r12\n"
        "  pop %rbx\n  .cfi_adjust_cfa_offset -8\n  .cfi_restore %rbx\n"
        "  pop %rbp\n  .cfi_adjust_cfa_offset -8\n  .cfi_restore %rbp\n"
        "  ret\n"
        "  .cfi_endproc\n"
        ".size call_site, .-call_site\n"
        "runtime:\n"
        "  .cfi_startproc\n"
        "  push %rbp\n  .cfi_def_cfa_offset 16\n  .cfi_offset %rbp, -16\n"
        "  mov %rsp, %rbp\n  .cfi_def_cfa_register %rbp\n"
        "  push %rax\n  .cfi_offset %rax, -24\n"
        "  push %rcx\n  .cfi_offset %rcx, -32\n"
        "  push %rdx\n  .cfi_offset %rdx, -40\n"
        "  push %rbx\n  .cfi_offset %rbx, -48\n"
        "  push %rsi\n  .cfi_offset %rsi, -56\n"
        "  push %rdi\n  .cfi_offset %rdi, -64\n"
        "  push %r8\n  .cfi_offset %r8, -72\n"
        "  push %r9\n  .cfi_offset %r9, -80\n"
        "  push %r10\n  .cfi_offset %r10, -88\n"
        "  push %r11\n  .cfi_offset %r11, -96\n"
        "  push %r12\n  .cfi_offset %r12, -104\n"
        "  push %r13\n  .cfi_offset %r13, -112\n"
        "  push %r14\n  .cfi_offset %r14, -120\n"
        "  push %r15\n  .cfi_offset %r15, -128\n"
        "  mov 8(%rbp), %rdi\n"
        "  and $-16, %rsp\n" // the site's stack may have any alignment
        "  call landed\n"
        "  test %rdx, %rdx\n"
        "  jnz .Lleave\n"
        "  lea -112(%rbp), %rsp\n"
        "  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n  pop %r11\n  pop %r10\n  pop %r9\n  pop %r8\n"
        "  pop %rdi\n  pop %rsi\n  pop %rbx\n  pop %rdx\n  pop %rcx\n" // rax is the result
        "  mov %rbp, %rsp\n"
        "  pop %rbp\n  .cfi_def_cfa %rsp, 8\n"
        "  ret\n"
        ".Lleave:\n"
        "  .cfi_undefined %rip\n" // its caller's frame no longer exists
        "  mov %rdx, %rsp\n"
        "  jmp .Lback\n"
        "  .cfi_endproc\n"
        ".size runtime, .-runtime\n"
        ".popsection");

static void futex_wait(atomic_int *word, int value) { syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0); }
static void futex_wake(atomic_int *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1 << 30, NULL, NULL, 0); }

static uint64_t next(uint64_t *state) { // xorshift64*
  *state ^= *state >> 12, *state ^= *state << 25, *state ^= *state >> 27;
  return *state * 0x2545f4914f6cdd1d;
}

// value is %vI of patches.ll.
static int64_t value(int i, uint64_t a, uint64_t b) {
  const uint64_t all[] = {a + 77, b - 13, a ^ b, a - b, a + b, a * b, a | b, a & b, a << 3, a ^ 21845, b * 7, a >> 2, b - a, b << 1};
  return all[i];
}

static int64_t ordinary_of(int64_t x) { return x ^ 90; }

static int64_t result(const struct given *g, int64_t a, int64_t b) {
  uint64_t sum = g->ordinary ? ordinary_of(value(1, a, b)) : 0;
  for (int i = 0; i < g->values; i++) sum += value(i, a, b);
  return sum;
}

struct patch_kind {
  const char *name;
  int size;
};

enum { REL32, MEM, REG, RAX, STUB, PUSH, INDIRECT, KINDS };

static const struct patch_kind kinds[KINDS] = {
    [REL32] = {"rel32", 5}, [MEM] = {"mem", 6}, [REG] = {"reg", 13}, [RAX] = {"rax", 12},
    [STUB] = {"stub", 5},   [PUSH] = {"push", 5}, [INDIRECT] = {"indirect", 6},
};

static void describe(struct thread *t, char what, const struct given *g, const struct site *s, void *ret) {
  static const char *const names[] = {"stackmap", "patchpoint", "statepoint"};
  int patched = s && s->kind, n = snprintf(t->line, sizeof t->line, "landed %d %d %c %s %" PRId64 " %s %s %c %d %p", t->number, t->tid, what, g->name,
                   s ? g->id : -1, names[g->kind], patched ? s->kind->name : "-", patched ? s->fill : '-', patched ? s->offset : -1, ret);
  for (int i = 0; i < g->values; i++)
    n += snprintf(t->line + n, sizeof t->line - n, " %%v%d=%" PRId64, i, value(i, t->a, t->b));
  if (!strcmp(g->name, "types"))
    snprintf(t->line + n, sizeof t->line - n, " %%t=%d %%d=%" PRId64 ".0", (int)value(0, t->a, t->b), t->a);
}

// to_wait reports whether a thread must wait in the function that it calls.
static int to_wait(struct thread *t, int in_ordinary) {
  int goal = atomic_load(&t->goal);
  return goal && sites[goal - 1].given->function == sites[atomic_load(&t->in) - 1].given->function && atomic_load(&t->ordinary) == in_ordinary;
}

static void rest(struct thread *t) {
  atomic_store(&t->landed, 1);
  atomic_fetch_add(&landings, 1);
  futex_wake(&landings);
  while (!atomic_load(&t->released)) futex_wait(&t->released, 0);
  atomic_store(&t->goal, 0);
  atomic_store(&t->landed, 0);
  atomic_fetch_add(&landings, 1);
  futex_wake(&landings);
}

// came_from returns the site whose patch, or whose stub, called.
static struct site *came_from(const uint8_t *ret) {
  for (struct site *s = sites; s < sites + site_count; s++)
    if ((ret > s->stub && ret <= s->stub + 64) || (ret > s->start && ret <= s->start + s->given->bytes)) return s;
  fprintf(stderr, "patches: a call of nobody's, returning to %p\n", ret);
  abort();
}

struct way landed(uint8_t *ret) {
  struct thread *t = self;
  struct site *s = came_from(ret);
  int patched = atomic_load(&s->patched);
  atomic_fetch_add(&t->calls, 1);
  atomic_fetch_add(&called[s - sites], 1);
  if (to_wait(t, 0)) {
    describe(t, 'p', s->given, s, ret);
    rest(t);
  }
  // There is no code to return to after the patch of a shadow, nor after a patch that was removed meanwhile.
  if (s->given->kind == STACKMAP || atomic_load(&s->patched) != patched) return (struct way){INT64_MIN, t->leave};
  return (struct way){ordinary_of(value(1, t->a, t->b)), NULL};
}

// The callee of functions of patches.ll without patches.
__attribute__((noinline)) int64_t ordinary(int64_t x) {
  struct thread *t = self;
  if (to_wait(t, 1)) {
    const struct site *s = &sites[atomic_load(&t->in) - 1];
    describe(t, 'o', s->given, NULL, __builtin_return_address(0));
    rest(t);
  }
  return ordinary_of(x);
}

void nobody(void) { die("a statepoint's own call, which was to be nops"); }

static void *run(void *p) {
  struct thread *t = self = p;
  t->tid = gettid();
  t->random = 88172645463325252 + t->number;
  while (!atomic_load(&leaving)) {
    int goal = atomic_load(&t->goal);
    struct site *s = goal ? &sites[goal - 1] : &sites[next(&t->random) % site_count];
    atomic_store(&t->in, s - sites + 1);
    int closed = 0; // the function of a site may have others
    for (struct site *o = sites; o < sites + site_count; o++) closed |= o->given->function == s->given->function && atomic_load(&o->closed);
    if (!closed && goal == atomic_load(&t->goal)) {
      t->iteration++;
      t->a = t->iteration << 8 | t->number << 1 | 1, t->b = t->iteration * 31 + t->number * 7 + 5;
      int64_t r = call_site(s->given->function, t->a, t->b, &t->leave);
      if (r != INT64_MIN && r != result(s->given, t->a, t->b)) atomic_fetch_add(&t->wrong, 1);
      atomic_fetch_add(&t->runs, 1);
    }
    atomic_store(&t->in, 0);
    if (closed || t->iteration % 64 == 0) usleep(100); // others have few processors
  }
  return NULL;
}

// far reports whether a distance does not fit in 32 bits.
static int far(const uint8_t *from, const void *to) {
  int64_t distance = (const uint8_t *)to - from;
  return distance != (int32_t)distance;
}

static uint8_t *put(uint8_t *p, int n, const void *bytes) { return (uint8_t *)memcpy(p, bytes, n) + n; }

// branch writes an instruction that ends with the distance to a target.
static uint8_t *branch(uint8_t *code, uint8_t *at, int n, const char *opcode, const void *target) {
  code = put(code, n, opcode);
  if (far(at + n + 4, target)) die("out of reach");
  int32_t distance = (const uint8_t *)target - (at + n + 4);
  return put(code, 4, &distance);
}

static const void *direct(const uint8_t *from) { return far(from, (void *)runtime) ? (void *)reach->thunk : (void *)runtime; }

// write_stub makes the stub of a site: it calls, and jumps back to the end of the region if possible.
static void write_stub(struct site *s, int push) {
  uint8_t code[64], *p = code;
  memset(code, 0xcc, sizeof code);
  if (push) {
    uint32_t number = s - sites;
    *p++ = 0x68, p = put(p, 4, &number);
  }
  p = branch(p, s->stub + (p - code), 1, "\xe8", direct(s->stub));
  if (push) p = put(p, 4, "\x48\x83\xc4\x08"); // add $8, %rsp
  if (s->given->kind == STACKMAP) put(p, 2, "\x0f\x0b");
  else branch(p, s->stub + (p - code), 1, "\xe9", s->start + s->given->bytes);
  memcpy(s->stub, code, sizeof code);
}

// make writes a site's patch to code, which is later copied to the site's start.
static void make(struct site *s, uint8_t *code) {
  int size = s->kind->size, n = s->given->bytes;
  uint8_t *p = code + s->offset, *at = s->start + s->offset;
  uint64_t to = (uint64_t)runtime;
  memcpy(code, s->original, n);
  if (s->fill == 'n') memset(code, 0x90, s->offset);
  if (s->given->kind != STACKMAP) memset(p + size, 0x90, n - s->offset - size);
  switch (s->kind - kinds) {
  case REL32: branch(p, at, 1, "\xe8", direct(at)); break;
  case MEM: branch(p, at, 2, "\xff\x15", &reach->runtime); break;
  case REG: put(put(put(p, 2, "\x49\xbb"), 8, &to), 3, "\x41\xff\xd3"); break;
  case RAX: put(put(put(p, 2, "\x48\xb8"), 8, &to), 2, "\xff\xd0"); break;
  case STUB: case PUSH: branch(p, at, 1, "\xe9", s->stub); break;
  case INDIRECT: branch(p, at, 2, "\xff\x25", &reach->stub[s - sites]); break;
  }
  if (s->kind - kinds >= STUB) write_stub(s, s->kind - kinds == PUSH);
}

static void write_code(uint8_t *at, const uint8_t *code, int n) {
  uint8_t *page = (uint8_t *)((uintptr_t)at & -PAGE), *end = (uint8_t *)(((uintptr_t)at + n + PAGE - 1) & -PAGE);
  if (mprotect(page, end - page, PROT_READ | PROT_WRITE | PROT_EXEC)) die("mprotect");
  memcpy(at, code, n);
  if (mprotect(page, end - page, protection)) die("mprotect");
}

// busy reports whether a thread other than a waiting one may be in the function of a site.
static int busy(const struct site *s) {
  for (struct thread *t = threads; t < threads + thread_count; t++) {
    int in = atomic_load(&t->in);
    if (in && sites[in - 1].given->function == s->given->function && !atomic_load(&t->landed)) return 1;
  }
  return 0;
}

// exclusive closes sites, calls a function for each when no thread is in them, and opens them when all processors see the change.
static void exclusive(struct site **list, int n, void (*change)(struct site *)) {
  for (int i = 0; i < n; i++) atomic_store(&list[i]->closed, 1);
  for (int i = 0; i < n; i++)
    while (busy(list[i])) usleep(50);
  for (int i = 0; i < n; i++) change(list[i]);
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0)) die("membarrier");
  for (int i = 0; i < n; i++) atomic_store(&list[i]->closed, 0);
}

static void apply(struct site *s) {
  uint8_t code[MAX_REGION];
  make(s, code);
  write_code(s->start, code, s->given->bytes);
  atomic_store(&s->patched, ++patches_made);
}

static void take_back(struct site *s) {
  if (!s->kind) return;
  write_code(s->start, s->original, s->given->bytes);
  atomic_store(&s->patched, 0);
  s->kind = NULL;
}

// choose sets the patch of a site, or returns the reason why it is impossible.
static const char *choose(struct site *s, const char *kind, char fill, int offset) {
  const struct patch_kind *k = NULL;
  for (int i = 0; i < KINDS; i++)
    if (!strcmp(kinds[i].name, kind)) k = &kinds[i];
  if (!k) return "no such kind";
  if (s->kind) return "it is patched";
  if (offset < 0 || offset + k->size > s->given->bytes) return "it does not fit";
  s->kind = k, s->fill = fill, s->offset = offset;
  return NULL;
}

static const Elf64_Shdr *section_of(const char *object, const char *name) {
  const Elf64_Ehdr *h = (const Elf64_Ehdr *)object;
  const Elf64_Shdr *all = (const Elf64_Shdr *)(object + h->e_shoff);
  for (int i = 0; i < h->e_shnum; i++)
    if (!strcmp(object + all[h->e_shstrndx].sh_offset + all[i].sh_name, name)) return &all[i];
  return NULL;
}

// read_map finds the sites in a stack map, whose records have offsets in their functions (LLVM, "Stack Map Format", version 3).
static void read_map(const char *object, const struct given *given, int64_t n) {
  const Elf64_Shdr *section = section_of(object, ".llvm_stackmaps");
  if (!section) return;
  const char *p = object + section->sh_offset;
  const uint32_t *head = (const uint32_t *)p;
  const char *record = p + 16 + head[1] * 24 + head[2] * 8;
  for (uint32_t r = 0; r < head[3]; r++) {
    uint64_t id = *(const uint64_t *)record;
    uint32_t offset = *(const uint32_t *)(record + 8);
    uint16_t locations = *(const uint16_t *)(record + 14);
    record += (16 + locations * 12 + 7) & ~7; // to a multiple of 8, from the section's start, which is aligned
    uint16_t live = *(const uint16_t *)(record + 2);
    record += (4 + live * 4 + 7) & ~7;
    for (const struct given *g = given; g < given + n; g++) {
      if ((uint64_t)g->id != id) continue;
      struct site *s = &sites[site_count++];
      s->given = g;
      s->start = (uint8_t *)g->function + offset - (g->kind == STATEPOINT ? g->bytes : 0);
      memcpy(s->original, s->start, g->bytes);
    }
  }
}

// read_maps reads the program's own file and the objects that the JIT has registered (gdb, "JIT Compilation Interface").
static void read_maps(const struct given *given, int64_t n) {
  struct entry { struct entry *next, *previous; const char *file; uint64_t size; };
  struct { uint32_t version, action; struct entry *relevant, *first; } *registered = dlsym(RTLD_DEFAULT, "__jit_debug_descriptor");
  int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  struct stat st;
  if (fd < 0 || fstat(fd, &st)) die("/proc/self/exe");
  char *own = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (own == MAP_FAILED) die("mmap");
  read_map(own, given, n);
  munmap(own, st.st_size);
  close(fd);
  for (struct entry *e = registered ? registered->first : NULL; e; e = e->next) read_map(e->file, given, n);
  if (site_count != n) {
    fprintf(stderr, "patches: %d sites of %d\n", site_count, (int)n);
    exit(1);
  }
}

// map_near maps memory for stubs below or above the code, within a distance of 32 bits.
static void map_near(void) {
  uint8_t *code = (uint8_t *)((uintptr_t)sites[0].start & -PAGE);
  const size_t size = 3 * PAGE;
  for (int64_t distance = 1 << 20; distance < 1 << 30; distance += 1 << 20)
    for (int sign = -1; sign < 2; sign += 2) {
      uint8_t *hint = code + sign * distance;
      near = mmap(hint, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
      if (near != MAP_FAILED) goto mapped;
    }
  die("no memory near the code");
mapped:
  reach = (void *)(near + MAX_SITES * 64);
  memcpy(reach->thunk, "\xff\x25\x0a\0\0\0", 6); // jmp *runtime(%rip)
  reach->runtime = (uint64_t)runtime;
  for (int i = 0; i < site_count; i++) {
    sites[i].stub = near + i * 64;
    reach->stub[i] = (uint64_t)sites[i].stub;
  }
}

static void answer(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void answer(const char *format, ...) {
  static char text[1 << 16];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (write(answers, text, n) != n) die("answer");
}

static void tell_sites(void) {
  for (struct site *s = sites; s < sites + site_count; s++) {
    char hex[2 * MAX_REGION + 1] = "";
    for (int i = 0; i < s->given->bytes; i++) sprintf(hex + 2 * i, "%02x", s->original[i]);
    answer("site %d %s %d %d %p %d %d %s\n", (int)(s - sites), s->given->name, (int)s->given->id, (int)s->given->kind, s->start,
           (int)s->given->bytes, (int)s->given->ordinary, hex);
  }
  answer("end\n");
}

// all_landed waits until every thread with an order waits.
static void await(int landed) {
  for (;;) {
    int seen = atomic_load(&landings), done = 1;
    for (struct thread *t = threads; t < threads + thread_count; t++)
      if (atomic_load(&t->goal) && atomic_load(&t->landed) != landed) done = 0;
    if (done) return;
    futex_wait(&landings, seen);
  }
}

static void command(char *line) {
  struct site *list[MAX_SITES];
  int n = 0;
  char *rest_of_line, *word = strtok_r(line, " \n", &rest_of_line);
#define NEXT strtok_r(NULL, " \n", &rest_of_line)
#define NUMBER(below) ({ char *w_ = NEXT; int n_ = w_ ? atoi(w_) : -1; if (n_ < 0 || n_ >= (below)) { answer("refused: a number\n"); return; } n_; })
  if (!word) return;
  if (!strcmp(word, "sites")) tell_sites();
  else if (!strcmp(word, "protect")) protection = NUMBER(8), answer("protected\n");
  else if (!strcmp(word, "patch")) {
    for (char *w; (w = NEXT);) {
      struct site *s = &sites[atoi(w) % site_count];
      char *kind = NEXT, *fill = NEXT, *offset = NEXT;
      const char *why = offset ? choose(s, kind, *fill, atoi(offset)) : "words are missing";
      if (why) {
        while (n) list[--n]->kind = NULL; // none of them
        answer("refused: %s\n", why);
        return;
      }
      list[n++] = s;
    }
    exclusive(list, n, apply);
    answer("patched\n");
  } else if (!strcmp(word, "restore")) {
    for (char *w; (w = NEXT);) list[n++] = &sites[atoi(w) % site_count];
    if (n == 0)
      for (struct site *s = sites; s < sites + site_count; s++)
        if (s->kind) list[n++] = s;
    exclusive(list, n, take_back);
    answer("restored\n");
  } else if (!strcmp(word, "land")) {
    struct thread *t = &threads[NUMBER(thread_count)];
    int site = NUMBER(site_count);
    char *what = NEXT;
    atomic_store(&t->released, 0);
    atomic_store(&t->ordinary, what && *what == 'o');
    atomic_store(&t->goal, site + 1);
    answer("ordered\n");
  } else if (!strcmp(word, "wait")) {
    await(1);
    for (struct thread *t = threads; t < threads + thread_count; t++)
      if (atomic_load(&t->landed)) answer("%s\n", t->line);
    answer("end\n");
  } else if (!strcmp(word, "release")) {
    for (struct thread *t = threads; t < threads + thread_count; t++) {
      atomic_store(&t->released, 1);
      futex_wake(&t->released);
    }
    await(0);
    answer("released\n");
  } else if (!strcmp(word, "quit")) {
    long runs = 0, calls = 0, wrong = 0;
    atomic_store(&leaving, 1);
    for (struct thread *t = threads; t < threads + thread_count; t++) {
      pthread_join(t->thread, NULL);
      runs += t->runs, calls += t->calls, wrong += t->wrong;
    }
    answer("runs %ld calls %ld wrong %ld\n", runs, calls, wrong);
    exit(0);
  } else answer("refused: no such command\n");
}

// at_random patches and restores without commands.
static long all_runs(void) {
  long runs = 0;
  for (struct thread *t = threads; t < threads + thread_count; t++) runs += atomic_load(&t->runs);
  return runs;
}

// at_random waits until threads have run after each change: on a busy machine all changes could be over before any thread ran.
static void at_random(uint64_t seed, int events) {
  for (int n = 0; n < events; n++) {
    struct site *s = &sites[next(&seed) % site_count], *list[] = {s};
    const struct patch_kind *k = &kinds[next(&seed) % KINDS];
    int room = s->given->bytes - k->size;
    if (s->kind) exclusive(list, 1, take_back);
    else if (room >= 0 && !choose(s, k->name, 'n', next(&seed) % (room + 1))) exclusive(list, 1, apply);
    for (long before = all_runs(); all_runs() < before + 8;) usleep(20);
  }
  atomic_store(&leaving, 1);
  long wrong = 0;
  for (struct thread *t = threads; t < threads + thread_count; t++) {
    pthread_join(t->thread, NULL);
    wrong += t->wrong;
  }
  for (int i = 0; i < site_count; i++)
    if (called[i]) printf("record %d %ld\n", (int)sites[i].given->id, called[i]);
  printf("wrong %ld\ndone\n", wrong);
}

int patches(const struct given *given, int64_t n, int argc, char **argv) {
  if (argc > 1) thread_count = atoi(argv[1]);
  if (n > MAX_SITES || thread_count < 1 || thread_count > MAX_THREADS) return 64;
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0)) die("membarrier");
  read_maps(given, n);
  map_near();
  printf("ready\n");
  fflush(stdout);
  static char line[1 << 14];
  if (argc > 3) fgets(line, sizeof line, stdin); // a tracer has time to begin
  for (int i = 0; i < thread_count; i++) {
    threads[i].number = i;
    if (pthread_create(&threads[i].thread, NULL, run, &threads[i])) die("pthread_create");
  }
  if (argc > 3) {
    at_random(88172645463325252 ^ strtoull(argv[2], NULL, 0), atoi(argv[3]));
    return 0;
  }
  answers = 3;
  while (fgets(line, sizeof line, stdin)) command(line);
  return 0;
}
