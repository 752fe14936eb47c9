// secrets: a process with random bytes, which are nowhere else, in a global variable, on the heap, on the stack, and in a file that is mapped twice. It
// prints their addresses. The numbers beside them are not secret.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SIZE = 32 };
struct known {
  unsigned char before[8], secret[SIZE], after[8];
};
static struct known global = {"beforeg", {0}, "afterg"};
static struct known *volatile heap, *volatile mapped;

static void fill(const char *name, struct known *at) {
  if (syscall(SYS_getrandom, at->secret, SIZE, 0) != SIZE) exit(1);
  printf("%s %#lx\n", name, (unsigned long)at->secret);
}

__attribute__((noinline)) static void inner(struct known *volatile own) {
  volatile int number = 4711;
  printf("ready\n");
  fflush(stdout);
  while (own && number) pause();
}

__attribute__((noinline)) static void outer(void) {
  struct known own = {"befores", {0}, "afters"};
  fill("stack", &own);
  inner(&own);
  __asm__ volatile("" ::"r"(&own) : "memory");
}

int main(void) {
  int file = memfd_create("secret", 0);
  if (file < 0 || ftruncate(file, 4096)) return 1;
  mapped = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  struct known *volatile again = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  heap = calloc(1, sizeof *heap);
  if (!heap || mapped == MAP_FAILED || again == MAP_FAILED) return 1;
  fill("global", &global);
  fill("heap", heap);
  fill("mapped", mapped);
  outer();
  return again != 0;
}
