// remap: maps, unmaps, moves, protects and empties memory at random, from a seed, and prints checksums of its
// content.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE = 4096, SLOTS = 5 };
static struct {
  unsigned char *at;
  size_t size;
} slots[SLOTS];
static unsigned state;

static unsigned next(unsigned n) { return state = state * 1103515245 + 12345, (state >> 16) % n; }

__attribute__((noinline)) static void map(int i) {
  static const size_t sizes[] = {PAGE, 16 * PAGE, 100 * PAGE, 700 * PAGE, 5000 * PAGE};
  size_t size = sizes[next(5)];
  unsigned char *hint = slots[next(SLOTS)].at; // where there is or was another
  void *p = mmap(hint, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) abort();
  slots[i].at = p, slots[i].size = size;
}

__attribute__((noinline)) static void unmap(int i) {
  munmap(slots[i].at, slots[i].size);
  slots[i].size = 0;
}

__attribute__((noinline)) static void anew(int i) {
  if (mmap(slots[i].at, slots[i].size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != slots[i].at) abort();
}

__attribute__((noinline)) static void grow(int i) {
  void *p = mremap(slots[i].at, slots[i].size, slots[i].size * 2, MREMAP_MAYMOVE);
  if (p == MAP_FAILED) abort();
  slots[i].at = p, slots[i].size *= 2;
}

__attribute__((noinline)) static void store(int i) {
  for (int n = 0; n < 5; n++) slots[i].at[next(slots[i].size / 64) * 64] = (unsigned char)next(256);
}

__attribute__((noinline)) static unsigned sum(int i) {
  unsigned s = 0;
  for (size_t n = 0; n < 30; n++) s = s * 31 + slots[i].at[next(slots[i].size / 64) * 64];
  return s;
}

__attribute__((noinline)) static void step(void) {
  int i = (int)next(SLOTS);
  if (slots[i].size == 0) {
    map(i);
    return;
  }
  switch (next(8)) {
  case 0: unmap(i); break;
  case 1: anew(i); break;
  case 2:
    if (slots[i].size < 9000 * PAGE) grow(i);
    break;
  case 3: madvise(slots[i].at, slots[i].size, MADV_DONTNEED); break;
  case 4:
    mprotect(slots[i].at, PAGE, PROT_READ);
    printf("%u\n", sum(i));
    mprotect(slots[i].at, PAGE, PROT_READ | PROT_WRITE);
    break;
  case 5: printf("%u\n", sum(i)); break;
  default: store(i);
  }
}

int main(int argc, char **argv) {
  state = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
  for (int n = 0; n < 60; n++) step();
  for (int i = 0; i < SLOTS; i++)
    if (slots[i].size) printf("%u\n", sum(i));
  fflush(stdout);
}
