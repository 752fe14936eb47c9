// patched KIND [churn]: a process that waits in a call which it has written into its own code. It prints the address of the function and its 64
// bytes, which it reads during the call. KIND is the kind of memory, and how it was written:
//
//   text        code of the program, made writable and then only executable again
//   mem         the same through /proc/self/mem
//   rwx         code of the program that stays writable
//   relocated   code that the dynamic linker has relocated (-z notext), which wrote the call
//   anonymous   memory of no file, made executable
//   anonymousrwx  the same, that stays writable
//   memfd       a file without a name that is mapped twice, and written to through the other mapping
//   memfdcopy   the same, executable in a private mapping
//   shared      a copy of the program's file, mapped twice as above
//   sharedcopy  the same, executable in a private mapping
//   file        a copy of the program's file, executable in a private mapping; the file is written to
//   large, largerwx  text and rwx, of a program built with -DLARGE: after the function come 2 MiB of which each page was written to
//
// churn: it waits elsewhere, and a thread repeatedly fills the page with a byte, word by word from its beginning, and records the byte on its
// stack before and after. It prints their addresses.
#define _GNU_SOURCE
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, SLED = 32, SHOWN = 64 };

// Each on a page of its own: a sled to write a call into, and a call of which the linker has to write the address.
__asm__(".section .patched,\"ax\",@progbits\n"
        ".p2align 12\n.type sled,@function\nsled:\n.cfi_startproc\n"
        "sub $8,%rsp\n.cfi_adjust_cfa_offset 8\n.fill 32,1,0x90\nadd $8,%rsp\n.cfi_adjust_cfa_offset -8\nret\n"
        ".cfi_endproc\n.size sled,.-sled\n"
        ".p2align 12,0x90\n.type relocated,@function\nrelocated:\n.cfi_startproc\n"
        "sub $8,%rsp\n.cfi_adjust_cfa_offset 8\nmovabs $callee,%r11\ncall *%r11\nadd $8,%rsp\n.cfi_adjust_cfa_offset -8\nret\n"
        ".cfi_endproc\n.size relocated,.-relocated\n.p2align 12,0x90\n.text");
extern unsigned char sled[], relocated[];

#ifdef LARGE
enum { MORE = 2 << 20 };
__asm__(".section .patched\n.fill 2 << 20,1,0xcc\n.text");
#else
enum { MORE = 0 };
#endif

static const char *kind;
static unsigned char *code, *writable; // the address where it is executed, and the one where it is written
static int file = -1;                  // the descriptor through which it is written, at offset
static off_t offset;
static int churns;

static int is(const char *name) { return !strcmp(kind, name); }

static void check(int ok) {
  if (ok) return;
  perror(kind);
  exit(1);
}

static void put(size_t at, const void *bytes, size_t size) {
  if (is("text")) check(!mprotect(code, PAGE, PROT_READ | PROT_WRITE));
  if (file >= 0)
    check(pwrite(file, bytes, size, offset + at) == (ssize_t)size);
  else
    memcpy(writable + at, bytes, size);
  if (is("text") || is("large")) check(!mprotect(code, PAGE, PROT_READ | PROT_EXEC));
}

__attribute__((used)) void callee(void) {
  printf("code %p ", (void *)code);
  for (int i = 0; i < SHOWN; i++) printf("%02x", code[i]);
  printf("\nready\n");
  fflush(stdout);
  while (!churns) pause();
}

static int at_offset(struct dl_phdr_info *info, size_t size, void *of) {
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    uintptr_t at = (uintptr_t)sled - info->dlpi_addr - p->p_vaddr;
    if (p->p_type == PT_LOAD && at < p->p_filesz) *(off_t *)of = p->p_offset + at;
  }
  return 1; // the first is the program
}

// copy makes a copy of the program's file.
static int copy(void) {
  mkdir("of", 0700); // cores lie in the directory itself
  int from = open("/proc/self/exe", O_RDONLY), to = open("of/copy", O_CREAT | O_RDWR | O_EXCL, 0700);
  static char b[1 << 20];
  ssize_t n = read(from, b, sizeof b);
  check(n > 0 && write(to, b, n) == n);
  close(from);
  return to;
}

static unsigned char *map(int protection, int flags, int fd, off_t at) {
  unsigned char *p = mmap(NULL, PAGE, protection, flags, fd, at);
  check(p != MAP_FAILED);
  return p;
}

static void prepare(void) {
  code = writable = sled;
  if (is("relocated")) code = relocated;
  if (is("mem")) check((offset = (off_t)(uintptr_t)sled, file = open("/proc/self/mem", O_RDWR)) >= 0);
  if (is("rwx")) check(!mprotect(sled, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC));
  if (!strncmp(kind, "large", 5)) {
    check(MORE > 0 && !mprotect(sled, 2 * PAGE + MORE, PROT_READ | PROT_WRITE | PROT_EXEC));
    for (size_t i = 0; i < 2 * PAGE + MORE; i += PAGE) ((unsigned char volatile *)sled)[i] = sled[i];
    if (is("large")) check(!mprotect(sled + PAGE, PAGE + MORE, PROT_READ | PROT_EXEC));
  }
  if (is("anonymous") || is("anonymousrwx")) {
    code = writable = map(PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code, sled, PAGE);
  }
  int memfd = !strncmp(kind, "memfd", 5), copied = is("shared") || is("sharedcopy") || is("file");
  if (!memfd && !copied) return;
  int fd = memfd ? memfd_create("code", 0) : copy();
  if (memfd) check(write(fd, sled, PAGE) == PAGE);
  if (copied) dl_iterate_phdr(at_offset, &offset);
  code = map(PROT_READ | PROT_EXEC, is("memfd") || is("shared") ? MAP_SHARED : MAP_PRIVATE, fd, offset);
  if (is("file"))
    file = fd;
  else
    writable = map(PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
}

// Not memset, which may write in any order.
static void fill(unsigned char with) {
  uint64_t volatile word = 0x0101010101010101 * with;
  if (file >= 0 || is("text")) {
    static uint64_t page[PAGE / 8];
    for (size_t i = 0; i < PAGE / 8; i++) page[i] = word;
    put(0, page, PAGE);
    return;
  }
  for (size_t i = 0; i < PAGE / 8; i++) ((uint64_t volatile *)writable)[i] = word;
}

static void *churn(void *argument) {
  unsigned char volatile turns[2] = {0, 0};
  unsigned char *volatile leads = code + PAGE / 2; // what looks like a return address
  fill(0);
  printf("turns %p\nturning\n", (void *)turns);
  fflush(stdout);
  for (unsigned char n = 1;; n++) {
    turns[0] = n;
    fill(n);
    turns[1] = n;
  }
  (void)leads;
  return argument;
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  kind = argv[1];
  churns = argc > 2;
  prepare();
  if (!is("relocated")) {
    unsigned char call[13] = {0x49, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xff, 0xd3}; // movabs $callee,%r11; call *%r11
    void (*to)(void) = callee;
    memcpy(call + 2, &to, sizeof to);
    put(8, call, sizeof call);
    if (is("anonymous")) check(!mprotect(code, PAGE, PROT_READ | PROT_EXEC));
  }
  ((void (*)(void))(uintptr_t)code)();
  if (is("anonymous")) check(!mprotect(code, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC));
  pthread_t t;
  check(!pthread_create(&t, NULL, churn, NULL));
  for (;;) pause();
}
