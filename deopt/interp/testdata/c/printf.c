// Every conversion of printf with flags, widths and precisions, on edge values.
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>
#include <float.h>

static const char *flags[] = {"", "-", "+", " ", "#", "0", "-0", "+0", " 0", "#0", "+-", "+ ", "#+", "'", "-#0+ "};
static const char *fields[] = {"", "1", "5", "12", "25", ".", ".0", ".1", ".3", ".10", ".22", "12.4", "3.12", "25.20", "8.0"};

static void build(char *f, int i, int j, const char *length, char verb) {
  snprintf(f, 32, "[%%%s%s%s%c]", flags[i], fields[j], length, verb);
}

#define EACH(length, verbs, type, ...)                                    \
  do {                                                                    \
    static const type values[] = {__VA_ARGS__};                           \
    for (const char *v = verbs; *v; v++)                                  \
      for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)           \
        for (size_t j = 0; j < sizeof fields / sizeof *fields; j++) {     \
          char f[32];                                                     \
          build(f, i, j, length, *v);                                     \
          fputs(f, stdout);                                               \
          for (size_t k = 0; k < sizeof values / sizeof *values; k++) {   \
            int n = printf(f, values[k]);                                 \
            printf("%d", n);                                              \
          }                                                               \
          putchar('\n');                                                  \
        }                                                                 \
  } while (0)

static int listed(const char *f, ...) {
  va_list ap, again;
  va_start(ap, f);
  va_copy(again, ap);
  char buffer[200];
  int n = vsnprintf(buffer, sizeof buffer, f, ap);
  printf("%d:%s|", n, buffer);
  n = vprintf(f, again);
  va_end(again);
  va_end(ap);
  return n;
}

int main(void) {
  EACH("", "diuxXo", int, 0, 1, -1, 42, INT_MAX, INT_MIN);
  EACH("hh", "dux", int, 0, 255, -129, 300);
  EACH("h", "dux", int, 0, 65535, -32769, 70000);
  EACH("l", "diuxXo", long, 0, -1, LONG_MAX, LONG_MIN);
  EACH("ll", "du", long long, 7, LLONG_MIN);
  EACH("j", "dx", intmax_t, 7, INTMAX_MIN);
  EACH("z", "ux", size_t, 7, SIZE_MAX);
  EACH("t", "d", ptrdiff_t, 7, -7);
  EACH("", "c", int, 'x', 0, 200);
  EACH("", "s", char *, "", "a", "hello, world", NULL);
  EACH("", "p", void *, NULL, (void *)0x1234, (void *)-1L);
  EACH("", "fFeEgGaA", double, 0.0, -0.0, 1.0, -1.5, 0.1, 9.5, 10.5, 99.9999, 123456.0, 1234567.0, 1e-5, 0.0001, 1e100, -2.5e-7, DBL_MAX, DBL_MIN, 4.9e-324,
       0.5, 1.9999, 2.5, 1e15, 123456789012345678.0);
  EACH("", "fFeEgGaA", double, INFINITY, -INFINITY);
  EACH("L", "feEgaA", long double, 0.0L, -0.0L, 0.1L, -1.5L, 9.99999999L, 1.9999999L, 255.99999999999999L, 12345678901234567890.0L);
  static const long double far[] = {1e4000L, 1e-4940L, 3.6e-4951L, -LDBL_MAX, LDBL_MIN};
  for (int i = 0; i < 5; i++)
    printf("%Lf %.3Le %Lg %La %.0Lf %30.5Lg %.2La %#.0Le\n", far[i], far[i], far[i], far[i], far[i], far[i], far[i], far[i]);
  EACH("L", "feg", long double, (long double)INFINITY);
  int n1, n2;
  long n3;
  signed char n4;
  printf("abc%n%dde%n%ln%hhn\n", &n1, 1234, &n2, &n3, &n4);
  printf("%d %d %ld %d\n", n1, n2, n3, n4);
  printf("%*d|%-*d|%*d|%.*d|%.*d\n", 8, 1, 8, 2, -8, 3, 4, 5, -1, 6);
  printf("%2$s %1$s %3$*4$d|%3$0*4$d\n", "one", "two", 7, 5);
  printf("%% %5%| %c%c\n", 'a', 'b');
  printf("%lc %ls %.2ls\n", (wint_t)L'w', L"wide", L"wide");
  printf("%.3s|%.*s|%10.2s\n", "abcdef", 2, "abcdef", "abcdef");
  printf("%d %s %.2f %c %Lf %ld %lld %zu %g %g %g %g %g %g %g %g\n", 1, "two", 3.0, '4', 5.0L, 6L, 7LL, (size_t)8, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0);
  int n = listed("%d %s %.2f %c %Lf %ld %lld %zu %g %g %g %g %g %g %g %g %g\n", 1, "two", 3.0, '4', 5.0L, 6L, 7LL, (size_t)8, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0);
  printf("%d\n", n);
  listed("%3$d %1$.1f %2$Lg\n", 1.5, 2.5L, 3);
  char small[5];
  n = snprintf(small, sizeof small, "%s", "too long");
  printf("%d %s %d\n", n, small, snprintf(NULL, 0, "%d", 12345));
  n = sprintf(small, "%x", 0xabc);
  printf("%d %s\n", n, small);
  fprintf(stderr, "to stderr %d\n", 5);
  dprintf(2, "and %s\n", "so");
  // A wide character that the "C" locale cannot encode: printf prints the text before it.
  n = printf("before %lc after\n", (wint_t)300);
  printf("\n%d\n", n);
  char partly[16] = "0123456789";
  n = snprintf(partly, sizeof partly, "%d%ls!", 12, L"\u0100");
  printf("%d %s\n", n, partly);
  return printf("%300d\n", 1) & 0xff;
}
