// The functions of <complex.h> of random numbers, to the last bit: a line is a name and the parts of the result.
#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>

static uint64_t state = 5;

static double draw(int range) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  double x = (double)(int64_t)state * 0x1p-63;
  return ldexp(x, (int)(state >> 20) % (2 * range + 1) - range);
}

int main(void) {
  for (int k = 0; k < 100; k++) {
    double complex z = __builtin_complex(draw(5), draw(5)), w = __builtin_complex(draw(2), draw(2)), r;
#define SHOW(f) r = f(z), printf(#f " %a %a\n", creal(r), cimag(r));
    SHOW(csqrt) SHOW(cexp) SHOW(clog) SHOW(csin) SHOW(ccos) SHOW(ctan) SHOW(csinh) SHOW(ccosh) SHOW(ctanh) SHOW(catan) SHOW(catanh) SHOW(cabs) SHOW(carg)
    r = cpow(z, w), printf("cpow %a %a\n", creal(r), cimag(r));
  }
  return 0;
}
