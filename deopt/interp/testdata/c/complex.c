// <complex.h>: products, quotients and roots to the last bit; functions to fewer digits, as libraries differ in the last.
#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>

static const double odd[] = {0.0, -0.0, 1, -1, 0.5, -3, 1e300, -1e-300, 0x1p-1074, INFINITY, -INFINITY, NAN};
static uint64_t state = 3;

static double draw(int range) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  double x = (double)(int64_t)state * 0x1p-63;
  return ldexp(x, (int)(state >> 20) % (2 * range + 1) - range);
}

static void bits(double x) { isnan(x) ? printf(" nan") : printf(" %a", x); }
static void digits(double x, int n) { isnan(x) ? printf(" nan") : printf(" %.*g", n, x); }

static void exact(double complex z) { bits(creal(z)), bits(cimag(z)), printf("\n"); }
static void near(double complex z, int n) { digits(creal(z), n), digits(cimag(z), n), printf("\n"); }

static void simple(double complex z) {
  exact(conj(z)), exact(cproj(z));
  exact(conjf(z)), exact(cprojf(z)), exact(conjl(z)), exact(cprojl(z));
  printf("%d %d %d %d\n", !!signbit(creal(conj(z))), !!signbit(cimag(conj(z))), !!signbit(crealf(z)), !!signbit((double)cimagl(z)));
}

static double complex make(double re, double im) { return __builtin_complex(re, im); }

#define EACH(x) x(csqrt) x(cexp) x(clog) x(csin) x(ccos) x(ctan) x(csinh) x(ccosh) x(ctanh) x(catan) x(catanh)

static void functions(double complex z) {
#define SHOW(x) printf(#x), near(x(z), 12), near(x##f(z), 4);
  EACH(SHOW)
  digits(cabs(z), 14), digits(carg(z), 14), digits(cabsf(z), 5), digits(cargf(z), 5), printf("\n");
#if __SIZEOF_LONG__ == 8
#define SHOWL(x) printf(#x "l"), near(x##l(z), 14);
  EACH(SHOWL)
  digits(cabsl(z), 15), digits(cargl(z), 15), printf("\n");
#endif
}

// The last place is most of a tiny result.
static int usual(double x) { return x == 0 || isnan(x) || isinf(x) || fabs(x) > 1e-5 && fabs(x) < 1e5; }

int main(void) {
  unsigned n = sizeof odd / sizeof *odd;
  for (unsigned a = 0; a < n; a++)
    for (unsigned b = 0; b < n; b++) {
      double complex z = make(odd[a], odd[b]);
      simple(z);
      if (usual(odd[a]) && usual(odd[b])) functions(z);
      for (unsigned c = 0; c < n; c++)
        for (unsigned d = 0; d < n; d += 1 + (a & 1)) {
          double complex w = make(odd[c], odd[d]);
#if __SIZEOF_LONG__ == 8
          exact(z * w), exact(z / w);
          exact((float complex)z * (float complex)w), exact((float complex)z / (float complex)w);
#endif
        }
    }
  for (int k = 0; k < 60; k++) {
    double complex z = make(draw(4), draw(4)), w = make(draw(3), draw(3));
    functions(z);
    near(cpow(z, w), 12), near(cpowf(z, w), 3);
#if __SIZEOF_LONG__ == 8
    near(cpowl(z, w), 12);
    double complex u = make(draw(600), draw(600)), v = make(draw(600), draw(600));
    float complex f = make(draw(100), draw(100)), g = make(draw(100), draw(100));
    long double complex l = (long double complex)u * z, m = (long double complex)v / w;
    exact(u * v), exact(u / v), exact(z * w), exact(z / w), exact(f * g), exact(f / g), exact(l * m), exact(l / m);
    near(csqrt(u), 15), near(csqrtl(l), 15), near(clog(u), 14), near(csqrtf(f), 5);
#endif
  }
  return 0;
}
