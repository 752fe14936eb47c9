// The double functions of libm and the same of libquadmath rounded to double and
// to long double, at arguments read from standard input: a name, and the bits of one or two doubles.
// cc -O0 -fno-builtin libm.c -lquadmath -lm
#include <math.h>
#include <quadmath.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define ONE(f) {#f, f, 0, f##q, 0}
#define TWO(f) {#f, 0, f, 0, f##q}

static __float128 exp10q(__float128 x) { return powq(10, x); }
double exp10(double);

static const struct {
  const char *name;
  double (*one)(double), (*two)(double, double);
  __float128 (*oneq)(__float128), (*twoq)(__float128, __float128);
} table[] = {
  ONE(exp), ONE(exp2), ONE(exp10), ONE(expm1), ONE(log), ONE(log2), ONE(log10), ONE(log1p),
  ONE(sin), ONE(cos), ONE(tan), ONE(asin), ONE(acos), ONE(atan), ONE(sinh), ONE(cosh), ONE(tanh),
  ONE(asinh), ONE(acosh), ONE(atanh),
  ONE(cbrt), TWO(pow), TWO(atan2), TWO(hypot),
};

int main(void) {
  char name[16];
  uint64_t a, b;
  while (scanf("%15s %lx %lx", name, &a, &b) == 3) {
    double x, y, r = 0, q = 0;
    long double l = 0;
    memcpy(&x, &a, 8);
    memcpy(&y, &b, 8);
    for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
      if (strcmp(table[i].name, name) != 0)
        continue;
      r = table[i].one ? table[i].one(x) : table[i].two(x, y);
      __float128 exact = table[i].oneq ? table[i].oneq(x) : table[i].twoq(x, y);
      q = (double)exact;
      l = (long double)exact;
    }
    memcpy(&a, &r, 8);
    memcpy(&b, &q, 8);
    printf("%016lx %016lx ", a, b);
    uint16_t high;
    memcpy(&a, &l, 8);
    memcpy(&high, (char *)&l + 8, 2);
    printf("%04x%016lx\n", high, a);
  }
}
