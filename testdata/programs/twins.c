// The computations of obj_host.c's programs, written again in C and compiled by gcc: the source of the numbers that the
// tests expect.
//
//	twins PROGRAM THREADS ROUNDS [CHURN]
//
// prints the line that obj_host prints at its end, and the line of its child after a fork. Where C leaves wrapping
// arithmetic open, uint64_t is used.
#include "checksum.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t u64;
typedef int64_t i64;

static u64 bits(double d) {
  u64 b;
  memcpy(&b, &d, sizeof b);
  return b;
}

static u64 tick(u64 seed) {
  u64 acc = seed, x = 12345, y = 1;
  for (u64 i = 0; i < 1000; i++) {
    u64 before = acc;
    acc = acc * 31 + x;
    x ^= before >> 7;
    y = (y + i) ^ acc;
  }
  return (acc + x) ^ y;
}

// If the optimized function exits anywhere, the sum is that of the baseline function over all numbers.
static u64 guards(u64 n) {
  static const i64 numbers[32] = {6,   18, 3, 40, -7, 12, 8,  27, 2,  34, 21, 16, 9, 50, 4,  11,
                                  -20, 30, 7, 24, 1,  44, 10, 19, 36, 5,  14, 28, 3, -1, 22, 48};
  u64 start = n % 32, end = start + (n >> 2) % 8 + 1, acc = 0;
  for (u64 i = start; i < end; i++) {
    i64 v = numbers[i % 32];
    if (v < 0) acc ^= (u64)(v * -3);
    else acc += (u64)v * i;
  }
  return acc;
}

static u64 patch(u64 n) {
  u64 b = n + 17, x = n;
  for (int i = 0; i < 4; i++) x = (x * 5 + b) ^ (uint32_t)x;
  return (((((x * 7) ^ b) - (x + 1000)) + x * b) ^ (b - x));
}

static u64 state(u64 un) {
  i64 n = (i64)un, x = 3 * n;
  double d = n * 0.5;
  int32_t w = (int32_t)((uint32_t)n * 1000003u);
  i64 s1 = (n & 1) + (int8_t)((int8_t)n + 3);
  double reals = ((float)d * 0.75f + (d + 1.5)) + ((d + 2.0) + (0.25 + 4.0));
  i64 s6 = (((((s1 ^ (uint16_t)n) + w) ^ (i64)reals) + (int32_t)(((uint32_t)w + 20) ^ 44)) ^ x);
  u64 t3 = (((u64)s6 * (u64)s6 + 1 + (u64)x) ^ (u64)s1) + (u64)s6;
  double real = d * 1.25 + (double)(float)n - d + (double)n;
  return (t3 * un ^ bits(real)) + t3;
}

static void fill(u64 *p, int n, u64 seed) {
  for (int i = 0; i < n; i++, seed = seed * 6364136223846793005u + 1442695040888963407u) p[i] = seed;
}

static u64 memory(u64 n) {
  u64 heap[16] = {n}, buffer[8], word;
  fill(buffer, 8, n);
  fill(buffer + 3, 2, 7);
  memset((char *)heap + 9, (int)(n & 255), n & 31);
  memcpy(heap + 6, buffer, 64);
  u64 r = (((heap[13] ^ heap[2]) + buffer[5]) ^ (n & 15)) + 33 + n;
  if (n % 64 == 63) puts("sixtyfour");
  memcpy((char *)heap + 9, &r, 8);
  memcpy(&word, heap + 1, 8);
  return (r ^ word) + heap[9];
}

static u64 floats(u64 un) {
  i64 n = (i64)un;
  double d = (double)n, e = d * 0.3;
  float f = (float)d, single = f * 1.5f - f, quad[4] = {0.5f, f * 2.0f, single, 4.0f};
  uint32_t single_bits;
  memcpy(&single_bits, &single, 4);
  u64 s = bits((d * e - (d - e)) / (double)(n | 1)) + single_bits;
  s = (s ^ un * 11) + bits(e + 0.125);
  s = (s ^ un * 13) + ((uint32_t)(un * 13) ^ 255);
  s ^= (u64)(int8_t)n;
  u64 pair[2];
  memcpy(pair, quad, 16);
  pair[0] += 5;
  pair[1] = pair[0] ^ un;
  return (s + pair[0]) ^ pair[1];
}

static u64 tree(u64 n, u64 seed) {
  u64 x = seed * 17;
  if (n < 2) return x + n;
  u64 a = tree(n - 1, x + 1);
  return a + 3 * tree(n - 2, a ^ seed);
}

static u64 recursion(u64 n) { return tree(n % 8 + 2, n); }

static u64 null(u64 n) { return n % 3 == 0 ? 1000003 : n * 101 * n + 5; }

static u64 call(u64 (*f)(u64), u64 n) { return share((i64)n, (i64)f(n)); }

int main(int argc, char **argv) {
  static const struct { const char *name; u64 (*f)(u64); } programs[] = {
    {"tick", tick}, {"guards", guards}, {"patch", patch}, {"state", state}, {"memory", memory},
    {"floats", floats}, {"recursion", recursion}, {"null", null},
  };
  u64 (*f)(u64) = NULL;
  for (size_t i = 0; argc > 3 && i < sizeof programs / sizeof programs[0]; i++)
    if (!strcmp(argv[1], programs[i].name)) f = programs[i].f;
  if (!f) return 64;
  u64 threads = strtoull(argv[2], NULL, 10), rounds = strtoull(argv[3], NULL, 10);
  u64 churn = argc > 4 ? strtoull(argv[4], NULL, 10) : 0, sum = 0, first = 0;
  for (u64 r = 0; r < rounds; r++)
    for (u64 t = 0; t < threads; t++) {
      u64 one = call(f, r * threads + t);
      sum += one;
      if (t == 0) first += one;
    }
  for (u64 n = 0; n < churn; n++) sum += call(f, -1 - n);
  printf("child %llu\nchecksum %llu\n", (unsigned long long)first, (unsigned long long)sum);
  return 0;
}
