// <math.h> for long double where results are exact, and a few digits of the others.
#include <math.h>
#include <stdio.h>

static volatile long double values[] = {0.0L,    -0.0L,  1,        -1,        0.5L,      -0.5L,    1.5L,
                                        2.5L,    -2.5L,  3.7L,     -13.25L,   1e10L,     -1e20L,   1e-4940L,
                                        1e4900L, 6,      0x1p-70L, INFINITY,  -INFINITY, NAN,      0x1.fffffffffffffffep+62L};

int main(void) {
  int n = sizeof values / sizeof *values, e;
  for (int i = 0; i < n; i++) {
    long double x = values[i], whole;
    printf("%Lg: %La %La %La %La %La %La %La %La\n", x, fabsl(x), floorl(x), ceill(x), truncl(x), roundl(x), rintl(x), nearbyintl(x),
           logbl(x));
    long double m = frexpl(x, &e);
    printf("%La", m);
    if (isfinite(x))
      printf(" %d", e);
    m = modfl(x, &whole);
    printf(" %La %La %La %La\n", m, whole, ldexpl(x, 5), scalbnl(x, -16400));
    printf("%d %d %d %d\n", ilogbl(x), !!isnan(x), !!isinf(x), !!signbit(x));
    if (fabsl(x) < 1e15L)
      printf("%ld %ld %lld %lld\n", lroundl(x), lrintl(x), llroundl(x), llrintl(x));
    if (x >= 0)
      printf("%La\n", sqrtl(x));
    if (fabsl(x) < 100)
      printf("%.15Lg %.15Lg %.15Lg %.15Lg %.15Lg %.15Lg %.15Lg %.15Lg\n", sinl(x), cosl(x), expl(x), expm1l(x), cbrtl(x), atanl(x),
             tanhl(x), powl(2, x));
    if (x > 0)
      printf("%.15Lg %.15Lg %.15Lg\n", logl(x), log2l(x), log10l(x));
    for (int j = 0; j < n; j++) {
      long double y = values[j];
      if (x != 0 || y != 0) // C leaves the order of the two zeros open
        printf("%La %La ", fminl(x, y), fmaxl(x, y));
      printf("%La ", copysignl(x, y));
      if (!isnan(x) && !isnan(y)) {
        printf("%La %.15Lg ", fdiml(x, y), atan2l(x, y));
        if (isfinite(x) && isfinite(y))
          printf("%.15Lg ", hypotl(x, y));
      }
      if (isfinite(x) && y != 0 && !isnan(y))
        printf("%La %La ", fmodl(x, y), remainderl(x, y));
      if (isfinite(x) && isfinite(y))
        printf("%La", fmal(x, y, 1.0L));
      printf("\n");
    }
  }
  return 0;
}
