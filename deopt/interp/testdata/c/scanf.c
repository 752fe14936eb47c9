// scanf from standard input and from strings.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void ints(const char *text, const char *format) {
  int a = -7, b = -7, c = -7;
  int n = sscanf(text, format, &a, &b, &c);
  printf("%s %s: %d %d %d %d\n", text, format, n, a, b, c);
}

static void doubles(const char *text) {
  float f = -7;
  double d = -7;
  long double l = -7;
  char rest[40] = "";
  int n = sscanf(text, "%f", &f);
  int m = sscanf(text, "%lf%39s", &d, rest);
  int k = sscanf(text, "%Lf", &l);
  printf("%s: %d %a %d %a %s %d %La\n", text, n, f, m, d, rest, k, l);
}

static int listed(const char *text, const char *format, ...) {
  va_list ap;
  va_start(ap, format);
  int n = vsscanf(text, format, ap);
  va_end(ap);
  return n;
}

// Every width of field: where a number is cut off decides what it is.
static void widths(const char *text) {
  for (int width = 1; width < 5; width++) {
    char format[24], rest = '!';
    float f = -7;
    int read = -7;
    snprintf(format, sizeof format, "%%%df%%n%%c", width);
    int n = sscanf(text, format, &f, &read, &rest);
    printf("%s %s: %d %a %d %c\n", text, format, n, f, read, rest);
  }
}

int main(void) {
  for (const char *const *t = (const char *const[]){"0x", "0x1f", "-0x", "0x.", "0x.5", "0xp1", "1e+", ".", "-.5"}, *const *end = t + 9; t < end; t++)
    widths(*t);
  ints("1 2 3", "%d%d%d");
  ints("1,2,3", "%d,%d,%d");
  ints("  12  34", " %d %d %d");
  ints("0x1f 017 9", "%i%i%i");
  ints("0x1f 017 9", "%x%o%d");
  ints("0xg", "%x%d");
  ints("0x", "%i%d");
  ints("-5 +6 --7", "%d%d%d");
  ints("123456", "%2d%3d%d");
  ints("99999999999 1", "%d%d");
  ints("", "%d");
  ints("   ", "%d");
  ints("abc", "%d");
  ints("5%6", "%d%%%d");
  ints("5 %6", "%d%%%d");
  ints("1 2 3", "%*d%d%n%d");
  ints("1 2", "%d%n%d");
  ints("-1", "%u");
  ints("300", "%hhd");
  doubles("1.5x");
  doubles("-.5e3 tail");
  doubles("1e");
  doubles("1e+5z");
  doubles("100ergs");
  doubles("0x1.8p3q");
  doubles("0x");
  doubles("0x.8p-1");
  doubles("inf");
  doubles("-Infinity!");
  doubles("infix");
  doubles("nan");
  doubles("1e400");
  doubles("-1e-400");
  doubles("4.9e-324");
  doubles("0.1");
  doubles("1..5");
  doubles(".");
  doubles("+-1");
  doubles("3.4028235677973366e38");
  doubles("12345678901234567890123456789012345678901234567890e-20");
  char s[20], t[20], c, four[5] = "....";
  int n = sscanf("hello world", "%3s%c%[a-y ]", s, &c, t);
  printf("%d %s %c %s\n", n, s, c, t);
  n = sscanf("key = value;", "%[^= ]%*[= ]%[^;]", s, t);
  printf("%d %s %s\n", n, s, t);
  n = sscanf("]x-", "%[]x-]", s);
  printf("%d %s\n", n, s);
  n = sscanf("abcdefg", "%4c%c", four, &c);
  printf("%d %s %c\n", n, four, c);
  n = sscanf("ab", "%4c", four);
  printf("%d %s\n", n, four);
  void *p = &p;
  n = sscanf("0xdeadbeef (nil)", "%p", &p);
  printf("%d %p\n", n, p);
  long l = 0;
  long long ll = 0;
  short h = 0;
  n = sscanf("123456789012 -5 70000", "%ld %lld %hd", &l, &ll, &h);
  printf("%d %ld %lld %d\n", n, l, ll, h);
  n = listed("7 8.5 word", "%d %lf %s", &n, &(double){0}, s);
  printf("%d %s\n", n, s);
  int a, b;
  n = scanf("%d %d", &a, &b);
  printf("%d %d %d\n", n, a, b);
  n = fscanf(stdin, "%19s%c", s, &c);
  printf("%d %s %d\n", n, s, c);
  char line[80];
  while (fgets(line, 10, stdin))
    printf("[%s]", line);
  printf("%d %d\n", feof(stdin) != 0, scanf("%d", &a));
  return 0;
}
