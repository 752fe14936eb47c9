// Numbers from text, and other arithmetic of <stdlib.h>.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char *ints[] = {"0", "1", "-1", " \t\n42abc", "+7", "--1", "", "x", "0x1F", "0x", "0xg", "010", "08", "zz", "-zz", "2147483647", "2147483648",
  "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616",
  "-18446744073709551615", "99999999999999999999999999", "- 1", "1_000", "0b101"};
static const char *floats[] = {"0", "-0", "1", ".5", "5.", ".", "", "1e5", "1e", "1e+", "1E-3x", "0x1p4", "0x1.8", "0x.1p4", "0xp4", "0x1p", "inf", "-INF", "infinit",
  "infinity", "nan", "NAN(123)", "nan(", "nan(x!)", "1e308", "1.8e308", "1e309", "-1e400", "1e-308", "2.2250738585072011e-308", "4.9e-324", "2e-324", "2.5e-324", "1e-400",
  "0.1", "123456789.123456789", "9007199254740993", "9007199254740992.99999999999999999999999999999999999999", "1.00000005960464477539062500000000000000000000000000000000001",
  "1.000000059604644775390625", "3.4028235677973366e+38", "1e4000", "1e-4940", "3.6451995318824746e-4951", "1e-4960", "1.18973149535723176506e4932", "1e5000",
  "18446744073709551617", "0x1.fffffffffffff8p0", "0x1.fffffffffffff7ffp0", "0x0.00000000000008p-1022", "1e99999999999999999999", "0e99999999999", "1e-99999999999999999999",
  "  +12.5e1z"};

int main(void) {
  for (unsigned i = 0; i < sizeof ints / sizeof *ints; i++) {
    printf("%s: %d %ld %lld", ints[i], i < 15 ? atoi(ints[i]) : 0, atol(ints[i]), atoll(ints[i]));
    static const int bases[] = {0, 2, 8, 10, 16, 36};
    for (int b = 0; b < 6; b++) {
      char *end;
      errno = 0;
      long l = strtol(ints[i], &end, bases[b]);
      printf(" | %ld %ld %d", l, (long)(end - ints[i]), errno);
      errno = 0;
      unsigned long u = strtoul(ints[i], &end, bases[b]);
      printf(" %lu %ld %d", u, (long)(end - ints[i]), errno);
    }
    printf(" %lld %llu\n", strtoll(ints[i], NULL, 10), strtoull(ints[i], NULL, 10));
  }
  errno = 0;
  long bad = strtol("1", NULL, 1);
  printf("%ld %d\n", bad, errno);
  for (unsigned i = 0; i < sizeof floats / sizeof *floats; i++) {
    char *e1, *e2, *e3;
    int n1, n2, n3;
    errno = 0;
    double d = strtod(floats[i], &e1);
    n1 = errno, errno = 0;
    float f = strtof(floats[i], &e2);
    n2 = errno, errno = 0;
    long double l = strtold(floats[i], &e3);
    n3 = errno;
    printf("%s: %a %ld %d %a %ld %d %La %ld %d %g\n", floats[i], d, (long)(e1 - floats[i]), n1, f, (long)(e2 - floats[i]), n2, l, (long)(e3 - floats[i]), n3, atof(floats[i]));
  }
  div_t q = div(-7, 2);
  ldiv_t r = ldiv(-7, 2);
  lldiv_t s = lldiv(7, -2);
  printf("%d %d %ld %ld %lld %lld\n", q.quot, q.rem, r.quot, r.rem, s.quot, s.rem);
  printf("%d %ld %lld\n", abs(-5), labs(-6), llabs(-7));
  return 0;
}
