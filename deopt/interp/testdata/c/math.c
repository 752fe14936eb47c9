// <math.h> where results are exact.
#include <float.h>
#include <math.h>
#include <stdio.h>

static volatile double values[] = {0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3.7, 1e10, -1e20, 1e-310, DBL_MAX, 0x1p-1074, INFINITY, -INFINITY, NAN, 4503599627370497.5, 0.49999999999999994};

int main(void) {
  int n = sizeof values / sizeof *values, e;
  for (int i = 0; i < n; i++) {
    double x = values[i], whole;
    float f = x, part;
    printf("%g: %g %g %g %g %g %g %g %g\n", x, fabs(x), floor(x), ceil(x), trunc(x), round(x), rint(x), nearbyint(x), logb(x));
    double m = frexp(x, &e);
    printf("%a", m);
    if (isfinite(x))
      printf(" %d", e);
    m = modf(x, &whole);
    printf(" %a %a %a %a %a\n", m, whole, ldexp(x, 5), scalbn(x, -1060), ldexpf(f, -130));
    float g = modff(f, &part);
    printf("%a %a %d %d %d %d\n", g, part, ilogb(x), !!isnan(x), !!isinf(x), !!signbit(x));
    if (fabs(x) < 1e15)
      printf("%ld %ld %lld\n", lround(x), lrint(x), llround(x));
    for (int j = 0; j < n; j++) {
      double y = values[j];
      if (x != 0 || y != 0) // C leaves the order of the two zeros open
        printf("%a %a ", fmin(x, y), fmax(x, y));
      printf("%a %a %a ", copysign(x, y), nextafter(x, y), nextafterf(f, (float)y));
      if (!isnan(x) && !isnan(y))
        printf("%a ", fdim(x, y));
      if (isfinite(x) && y != 0 && !isnan(y))
        printf("%a %a ", fmod(x, y), remainder(x, y));
      printf("%a %a\n", fma(x, y, 1.0), fmaf(f, (float)y, 0.1f));
    }
  }
  printf("%a %a\n", sqrt(2.0 + values[0]), sqrtf(2.0f + (float)values[0]));
  return 0;
}
