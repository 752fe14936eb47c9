// What C can say that LLVM IR has a form of its own for.
#include <complex.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fields { int a : 3; unsigned b : 9; char c[20]; double d; };
struct large { long x[8]; };
struct __attribute__((packed)) tight { char c; int i; long double ld; __int128 x; } tight = {1, 2, 3.5L, 4};
union either { int i; float f; char c[8]; } either = {.f = 1.5f};
struct tail { int n; char f[]; } tail = {3, {1, 2, 3}};

const char *strings[] = {"hello\n\"\\\001", "w\xff"};
__attribute__((section(".odd"), aligned(64))) int placed = 3;
__thread int local_exec;
extern int weak_one __attribute__((weak));
int common;
_Atomic int counter;
__attribute__((constructor(200))) void before(void) {}
__attribute__((noinline, cold, noreturn)) void die(void) { abort(); }
__asm__(".globl from_asm\nfrom_asm: ret");

int target(int x) { return x * 2; }
int other_name(int) __attribute__((alias("target")));
static int chosen(int x) { return x; }
static void *choose(void) { return chosen; }
int indirect(int) __attribute__((ifunc("choose")));
__attribute__((visibility("hidden"))) int hidden(void) { return weak_one ? indirect(1) : 0; }

struct large by_value(struct large l, struct fields s) { l.x[0] += s.a; return l; }
int variable(int n, ...) {
  va_list ap;
  va_start(ap, n);
  int s = 0;
  for (int i = 0; i < n; i++) s += va_arg(ap, int);
  double d = va_arg(ap, double);
  struct large q = va_arg(ap, struct large);
  va_end(ap);
  return s + d + q.x[1];
}
static int (*table[])(int, ...) = {variable, variable};

int threaded(const unsigned char *p) {
  static void *const at[] = {&&add, &&sub, &&end};
  int a = 0;
  goto *at[*p++];
add: a++; goto *at[*p++];
sub: a--; goto *at[*p++];
end: return a;
}
unsigned long assembly(unsigned long x) {
  unsigned long y;
  __asm__ volatile("mov %1,%0\n\tadd $1,%0" : "=r"(y) : "r"(x) : "cc", "memory");
  return y;
}
jmp_buf where;
int returns_twice(void) { return setjmp(where); }
long double wide(long double x) { return x * 3.14159L + __builtin_inff(); }
__float128 wider(__float128 a) { return a / 3; }
int cases(long x) {
  switch (x) {
  case 1: return 2;
  case -5: return 3;
  case 1LL << 40: return 4;
  case 10 ... 20: return 7;
  }
  return 0;
}
int of_length(int n) { int a[n]; char b[n * 2]; memset(a, 0, sizeof a); return a[n - 1] + sizeof b; }
int atomics(int *p) {
  __atomic_store_n(p, 3, __ATOMIC_SEQ_CST);
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  int expected = 1;
  __atomic_compare_exchange_n(p, &expected, 2, 1, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  return __atomic_fetch_nand(p, 5, __ATOMIC_RELAXED) + __atomic_exchange_n(p, 2, __ATOMIC_ACQ_REL) + counter++;
}
double complex complexes(double complex a, double complex b) { return a * b / (a + 1); }
int overflow(int a, int b, int *r) { return __builtin_add_overflow(a, b, r) | __builtin_mul_overflow((long)a, b, (long *)r); }
float dot(float *a, float *b, int n) { float s = 0; for (int i = 0; i < n; i++) s += a[i] * b[i]; return s; }
void copy(int *restrict d, const int *restrict s, int n) { for (int i = 0; i < n; i++) d[i] = s[i] * 3; }
int other_space(int __attribute__((address_space(257))) *p) { return *p; }
int tail_call(int n) { if (n == 0) return 0; __attribute__((musttail)) return tail_call(n - 1); }
static inline __attribute__((always_inline)) int inlined(int x) { return __builtin_expect(x, 1) ? __builtin_popcount(x) : __builtin_clz(x); }
int uses_inlined(int x) { return inlined(x) + inlined(x + 1); }

int main(int c, char **v) {
  printf("%d %f %s\n", variable(2, 1, 2, 3.0, (struct large){{1}}), sin(c), strings[0]);
  struct fields s = {1, 2};
  struct large l = by_value((struct large){{0}}, s);
  return l.x[0] + table[0](0) + cases(c) + of_length(c) + threaded((unsigned char *)"\0\2");
}
