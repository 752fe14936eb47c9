// The inline assembly that programs use most often.
#include <stdint.h>
#include <stdio.h>

static uint32_t swap32(uint32_t x) {
  __asm__("bswap %0" : "=r"(x) : "0"(x));
  return x;
}

static uint32_t swap32l(uint32_t x) {
  __asm__("bswapl %0" : "+r"(x));
  return x;
}

static uint16_t swap16(uint16_t x) {
  __asm__("rorw $8, %0" : "+r"(x) : : "cc");
  return x;
}

static uint16_t swap16b(uint16_t x) {
  __asm__("xchgb %b0,%h0" : "=Q"(x) : "0"(x));
  return x;
}

static int first(uint32_t x) {
  int n;
  __asm__("bsfl %1,%0" : "=r"(n) : "rm"(x) : "cc");
  return n;
}

static int last(uint32_t x) {
  int n;
  __asm__("bsrl %1, %0" : "=r"(n) : "r"(x));
  return n;
}

static void fences(void) {
  __asm__ volatile("mfence" ::: "memory");
  __asm__ volatile("lfence" ::: "memory");
  __asm__ volatile("sfence" ::: "memory");
  __asm__ volatile("pause");
  __asm__ volatile("rep; nop" ::: "memory");
  __asm__ volatile("nop");
#ifdef __x86_64__
  __asm__ volatile("lock; addl $0,0(%%rsp)" ::: "memory", "cc");
#else
  __asm__ volatile("lock; addl $0,0(%%esp)" ::: "memory", "cc");
#endif
}

static uint64_t cycles(void) {
  uint32_t low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  return (uint64_t)high << 32 | low;
}

#ifdef __x86_64__
static uint64_t swap64(uint64_t x) {
  __asm__("bswapq %0" : "=r"(x) : "0"(x));
  return x;
}

static uint64_t first64(uint64_t x) {
  uint64_t n;
  __asm__("bsfq %1, %0" : "=r"(n) : "r"(x));
  return n;
}

static uint64_t last64(uint64_t x) {
  uint64_t n;
  __asm__("bsrq %1,%0" : "=r"(n) : "rm"(x));
  return n;
}

static uint64_t ones(uint64_t x) {
  uint64_t n;
  __asm__("popcntq %1, %0" : "=r"(n) : "r"(x));
  return n;
}

static uint64_t high(uint64_t a, uint64_t b, uint64_t *low) {
  uint64_t h;
  __asm__("mulq %3" : "=a"(*low), "=d"(h) : "a"(a), "rm"(b) : "cc");
  return h;
}

static uint64_t chosen(uint64_t held, uint64_t other, uint64_t by) {
  __asm__("testl %k2, %k2\n\tcmovzq %1, %0\n\t" : "+r"(held) : "r"(other), "r"(by) : "cc");
  return held;
}

static uint64_t quarter(uint64_t x, int *none) {
  _Bool zero;
  __asm__("and $3, %k0\n\t" : "+r"(x), "=@ccz"(zero));
  *none = zero;
  return x;
}
#endif

int main(void) {
  uint64_t x = 0x0123456789abcdef, before = cycles();
  for (int k = 0; k < 100; k++) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    uint32_t y = x >> (k % 60) | 1u << k % 32;
    fences();
    printf("%x %x %x %x %d %d\n", swap32(y), swap32l(y), swap16(y), swap16b(y), first(y), last(y));
#ifdef __x86_64__
    uint64_t z = x >> k % 64 | 1, low, h = high(x, z, &low);
    printf("%lx %lu %lu %lu %lx %lx\n", swap64(x), first64(z << k % 64 | 1ul << 63), last64(z), ones(z), h, low);
    int none;
    printf("%lx %lx %lx", chosen(x, y, z << 32), chosen(x, y, z), quarter(x, &none));
    printf(" %d\n", none);
#endif
  }
  printf("%d\n", cycles() > before);
  return 0;
}
