// The signs of NaN results, for operands that are numbers or NaNs.
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define T(x) printf("%s %d %f\n", #x, isnan(x) != 0, (double)(x))
#define EACH(x) T(log##x(m)); T(log2##x(m)); T(log10##x(m)); T(log1p##x(m)); T(sqrt##x(m)); T(pow##x(m, h)); T(fmod##x(m, z)); T(asin##x(m)); T(acos##x(m)); \
  T(sin##x(inf)); T(cos##x(inf)); T(tan##x(inf)); T(acosh##x(z)); T(atanh##x(m)); T(fmod##x(inf, m)); T(remainder##x(m, z)); T(log##x(-inf)); \
  T(exp##x(n)); T(log##x(n)); T(log##x(-n)); T(log10##x(-n)); T(pow##x(-n, m)); T(cbrt##x(-n)); T(acos##x(-n)); T(ceil##x(-n)); T(exp2##x(-n)); \
  T(scalbn##x(-n, 2)); T(atan2##x(-n, m)); T(sinh##x(-n)); T(expm1##x(-n)); T(hypot##x(n, m)); T(nextafter##x(-n, z)); T(nextafter##x(z, -n)); T(sin##x(-inf))
#define FEW(x) T(fdim##x(-n, m))

static void doubles(void) {
  volatile double m = -8, z = 0, h = 0.5, inf = INFINITY, n = NAN;
  EACH();
  FEW();
}

static void floats(void) {
  volatile float m = -8, z = 0, h = 0.5, inf = INFINITY, n = NAN;
  EACH(f);
  FEW(f);
}

int main(void) {
  doubles();
  floats();
  return 0;
}
