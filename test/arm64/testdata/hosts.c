// Differences between processors: fused sums of products, NaNs, conversions out of range, and functions that C libraries implement
// for each processor.
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252ull;

static uint64_t next(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

static double number(int low, int high) {
  double x = ldexp(1 + (next() >> 12) * 0x1p-52, low + (int)(next() % (high - low)));
  return next() & 1 ? x : -x;
}

static void bits(const char *name, double x) {
  uint64_t b;
  memcpy(&b, &x, 8);
  printf("%s %016llx\n", name, (unsigned long long)b);
}

static void bitsf(const char *name, float x) {
  uint32_t b;
  memcpy(&b, &x, 4);
  printf("%s %08x\n", name, b);
}

typedef double function(double);

int main(void) {
  double sum = 0, poly = 0;
  float narrow = 0;
  for (int i = 0; i < 2000; i++) {
    double a = number(-3, 3), b = number(-3, 3);
    sum += a * b;
    poly = poly * 0.75 + a;
    narrow = narrow * (float)a + (float)b;
    if (fabsf(narrow) > 1e6f) narrow = 1;
  }
  bits("sum", sum), bits("poly", poly), bitsf("narrow", narrow);
  bits("fma", fma(sum, poly, narrow));

  volatile double zero = 0, huge = DBL_MAX;
  volatile float zerof = 0;
  bits("0/0", zero / zero), bits("inf-inf", huge * 2 - huge * 2), bits("0*inf", zero * (huge * 2));
  bitsf("0/0f", zerof / zerof), bitsf("narrowed", (float)(zero / zero)), bits("widened", zerof / zerof);
  bits("nan+nan", nan("1") + -nan("2")), bits("fmod", fmod(1, zero)), bits("sqrt", sqrt(zero - 1));
  printf("%f %f\n", zero / zero, -(zero / zero));

  printf("%ld %ld %ld\n", lrint(1e300), lrint(-2.5), lround(2.5));
  uint64_t big = next();
  bits("u64", (double)big), bitsf("u64f", (float)big), bits("s64", (double)(int64_t)big);
  printf("%lld %llu\n", (long long)9.2e18, (unsigned long long)1.8e19);

  static const struct {
    const char *name;
    function *f;
    int low, high;
  } functions[] = {
      {"sin", sin, -40, 60}, {"cos", cos, -40, 60}, {"exp", exp, -40, 9}, {"log", log, -900, 900}, {"tanh", tanh, -40, 5}, {"cbrt", cbrt, -900, 900},
      {"asinh", asinh, -40, 900}, {"acosh", acosh, 0, 900}, {"atanh", atanh, -40, 0},
      {"floor", floor, -3, 60}, {"rint", rint, -3, 60}, {"logb", logb, -900, 900},
  };
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    for (int n = 0; n < 12; n++) bits(functions[i].name, functions[i].f(number(functions[i].low, functions[i].high)));
  }
  char text[64];
  snprintf(text, sizeof text, "%.17g %a %.3e", sum, poly, (double)narrow);
  puts(text);
  bits("strtod", strtod("2.2250738585072011e-308", NULL)), bitsf("strtof", strtof("1.17549429e-38", NULL));

  return 0;
}
