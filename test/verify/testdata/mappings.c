// mappings: memory that is mapped, moved and unmapped after the sites.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, SIZE = 64 * PAGE };

__attribute__((noinline)) static int mapped(int n) {
  char *p = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return -1;
  for (int i = 0; i < n; i++) p[i * PAGE] = (char)(i + 1);
  p = mremap(p, SIZE, 2 * SIZE, MREMAP_MAYMOVE);
  if (p == MAP_FAILED) return -2;
  int sum = p[2 * SIZE - 1];
  for (int i = 0; i < n; i++) sum += p[i * PAGE];
  mprotect(p, PAGE, PROT_READ);
  sum += p[0];
  munmap(p, 2 * SIZE);
  char *again = mmap(p, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); // which is zero, wherever it is
  if (again == MAP_FAILED) return -3;
  sum += again[0];
  again[1] = 5;
  sum += again[1];
  munmap(again, PAGE);
  return sum;
}

__attribute__((noinline)) static int anew(int n) { // other memory at the address of earlier memory
  enum { MANY = 1024 * PAGE };
  char *p = mmap(0, MANY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return -1;
  for (int i = 0; i < 8; i++) p[i * 100 * PAGE + n] = (char)n;
  munmap(p, MANY);
  if (mmap(p, MANY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != p) return -2;
  int sum = n;
  for (int i = 0; i < 8; i++) sum += p[i * 100 * PAGE + n];
  p[300 * PAGE] = (char)n;
  madvise(p, MANY, MADV_DONTNEED);
  sum += p[300 * PAGE];
  munmap(p, MANY);
  return sum;
}

__attribute__((noinline)) static long large(int n) { // malloc maps blocks of this size, and free unmaps them
  size_t size = (size_t)n << 20;
  long *p = malloc(size);
  memset(p, n, size);
  long sum = p[size / sizeof *p - 1] & 0xff;
  free(p);
  return sum;
}

int main(void) {
  for (int n = 1; n < 6; n++) {
    int a = mapped(n);
    long b = large(n);
    printf("%d %ld %d\n", a, b, anew(n));
    fflush(stdout);
  }
}
