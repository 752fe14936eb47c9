// C with functions that are inlined into each other, over two files, and one that is split in two.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "inline.h"

static int table[64];

static inline int mix(int a, int b) {
  int t = rotate(a, 3);
  t ^= rotate(b, 7);
  return t + a * b;
}

__attribute__((noinline)) int fill(int n) {
  int last = 0;
  for (int i = 0; i < n; i++) {
    table[i & 63] = mix(i, last);
    last = table[i & 63];
    if (__builtin_expect(last == 12345, 0)) {
      fprintf(stderr, "unlikely\n");
      abort();
    }
  }
  return last;
}

__attribute__((always_inline)) static inline int wait_here(int x) {
  if (x != 0)
    pause();
  return x + 1;
}

__attribute__((always_inline)) static inline int outer_wait(int x) {
  int y = wait_here(x);
  return y * 2;
}

__attribute__((noinline)) int stop(int x) {
  int r = outer_wait(x) + 3;
  return r ^ table[0];
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 100;
  int a = fill(n);
  puts("ready");
  fflush(stdout);
  int b = stop(argc + 1);
  printf("%d %d\n", a, b);
  return 0;
}
