// awaited: a process on a stack whose pages userfaultfd should provide, but no process does. outer has an array on that stack whose pages are missing,
// and a pointer to the end of the code. Code and heap have two pages each, of which the second is missing. It prints their addresses, waits for
// SIGUSR1, and ends.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { PAGE = 4096, STACK = 256 * PAGE };

static int fd;
static char *stack, *code;
static volatile sig_atomic_t told;
static ucontext_t before, on;

static char *provided(size_t size, int prot) {
  char *p = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(p, 0xc3, size);
  mprotect(p, size, prot);
  return p;
}

static int watch(char *p, size_t size) {
  struct uffdio_register r = {.range = {(uintptr_t)p, size}, .mode = UFFDIO_REGISTER_MODE_MISSING};
  return ioctl(fd, UFFDIO_REGISTER, &r);
}

__attribute__((noinline)) static void inner(char *array) {
  char *hole = (char *)(((uintptr_t)array + PAGE - 1) & -(uintptr_t)PAGE);
  madvise(hole, 16 * PAGE, MADV_DONTNEED);
  printf("hole %#lx\nready\n", (unsigned long)hole);
  fflush(stdout);
  while (!told) pause();
  __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void outer(void) {
  char array[20 * PAGE], *into = code + PAGE + 16;
  __asm__ volatile("" ::"r"(&into) : "memory");
  __asm__ volatile("" ::"r"(array) : "memory");
  inner(array);
  __asm__ volatile("" ::"r"(array) : "memory");
}

static void tell(int s) { told = s; }

int main(void) {
  signal(SIGUSR1, tell);
  fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
  struct uffdio_api api = {.api = UFFD_API};
  if (fd < 0 || ioctl(fd, UFFDIO_API, &api)) return 1;
  stack = provided(STACK, PROT_READ | PROT_WRITE);
  code = provided(2 * PAGE, PROT_READ | PROT_EXEC);
  char *heap = provided(2 * PAGE, PROT_READ | PROT_WRITE);
  if (watch(stack, STACK) || watch(code, 2 * PAGE) || watch(heap, 2 * PAGE)) return 2;
  madvise(code + PAGE, PAGE, MADV_DONTNEED);
  madvise(heap + PAGE, PAGE, MADV_DONTNEED);
  printf("code %#lx\nheap %#lx\n", (unsigned long)code, (unsigned long)heap);
  getcontext(&on);
  on.uc_stack.ss_sp = stack;
  on.uc_stack.ss_size = STACK;
  on.uc_link = &before;
  makecontext(&on, outer, 0);
  swapcontext(&before, &on);
  printf("done\n");
  return 0;
}
