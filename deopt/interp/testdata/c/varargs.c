// Variadic functions of the program: every class of argument, more arguments
// than registers, and lists that are copied and passed on.
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct small { int a; char b; };
struct pair { long a; double b; };
struct floats { float x, y, z; };
struct large { long v[5]; };
#ifdef __SIZEOF_INT128__
struct wide { __int128 v; };
#endif
struct odd { char text[11]; };
typedef float v8f __attribute__((vector_size(32)));
struct __attribute__((packed)) loose { v8f v; };
union mix { int i; double d; };

static void show(int fixed, double other, const char *kinds, ...) {
  va_list ap;
  va_start(ap, kinds);
  printf("%d %g", fixed, other);
  for (; *kinds; kinds++) {
    switch (*kinds) {
    case 'i': printf(" %d", va_arg(ap, int)); break;
    case 'l': printf(" %ld", va_arg(ap, long)); break;
    case 'd': printf(" %g", va_arg(ap, double)); break;
    case 'L': printf(" %Lg", va_arg(ap, long double)); break;
    case 's': printf(" %s", va_arg(ap, char *)); break;
    case 'p': { struct pair p = va_arg(ap, struct pair); printf(" (%ld %g)", p.a, p.b); break; }
    case 'm': { struct small p = va_arg(ap, struct small); printf(" (%d %c)", p.a, p.b); break; }
    case 'f': { struct floats p = va_arg(ap, struct floats); printf(" (%g %g %g)", p.x, p.y, p.z); break; }
    case 'B': { struct large p = va_arg(ap, struct large); printf(" (%ld %ld)", p.v[0], p.v[4]); break; }
    case 'o': { struct odd p = va_arg(ap, struct odd); printf(" (%s)", p.text); break; }
    case 'v': { struct loose p = va_arg(ap, struct loose); printf(" {%g %g}", p.v[0], p.v[7]); break; }
    case 'u': { union mix p = va_arg(ap, union mix); printf(" (%g)", p.d); break; }
#ifdef __SIZEOF_INT128__
    case 'q': { __int128 v = va_arg(ap, __int128); printf(" %lx:%lx", (long)(v >> 64), (long)v); break; }
    case 'w': { struct wide p = va_arg(ap, struct wide); printf(" <%lx:%lx>", (long)(p.v >> 64), (long)p.v); break; }
#endif
    }
  }
  puts("");
  va_end(ap);
}

static long total(int n, va_list ap) {
  long t = 0;
  while (n--)
    t = 10 * t + va_arg(ap, int);
  return t;
}

static void twice(int n, ...) {
  va_list a, b;
  va_start(a, n);
  va_copy(b, a);
  long first = total(n, a), second = total(n, b);
  va_end(a);
  va_end(b);
  va_start(a, n);
  printf("%ld %ld %ld\n", first, second, total(n, a));
  va_end(a);
}

static int deep(int n, ...) {
  va_list ap;
  char scratch[n + 1];
  memset(scratch, 'x', sizeof scratch);
  va_start(ap, n);
  int v = va_arg(ap, int);
  if (n > 0)
    v += deep(n - 1, v + scratch[0], 1, 2, 3, 4, 5, 6, 7);
  v += va_arg(ap, int);
  va_end(ap);
  return v;
}

static void loops(const char *text, ...) {
  va_list ap;
  for (int i = 1; i < 4; i++) {
    char buffer[i * 10];
    va_start(ap, text);
    vsnprintf(buffer, sizeof buffer, text, ap);
    va_end(ap);
    puts(buffer);
  }
}

int main(void) {
  struct small m = {1, 'x'};
  struct pair p = {2, 2.5};
  struct floats f = {1, 2, 3};
  struct large b = {{10, 11, 12, 13, 14}};
  struct odd o = {"ten bytes."};
  union mix u = {.d = 4.25};
  show(1, 1.5, "");
  show(2, 2.5, "iiiiiiiii", 1, 2, 3, 4, 5, 6, 7, 8, 9);
  show(3, 3.5, "dddddddddddd", 1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11., 12.);
  show(4, 4.5, "idLsidLsidLs", 1, 1., 1.L, "one", 2, 2., 2.L, "two", 3, 3., 3.L, "three");
  show(5, 5.5, "mpfBou", m, p, f, b, o, u);
  struct loose v = {{5, 6, 7, 8, 9, 10, 11, 12}}; // less aligned than its LLVM type
  show(5, 5.5, "BvBv", b, v, b, v);
  show(6, 6.5, "mpfBoumpfBoumpfBou", m, p, f, b, o, u, m, p, f, b, o, u, m, p, f, b, o, u);
#ifdef __SIZEOF_INT128__
  __int128 q = (__int128)0x1122334455667788 << 64 | 0x99;
  struct wide w = {-q};
  show(7, 7.5, "qiLid", q, 1, 3.L, 2, 4.); // clang misplaces an __int128 that does not fit in the registers
  show(8, 8.5, "wiwwiLw", w, 1, w, w, 2, 3.L, w);
#endif
  show(9, 9.5, "BiBLB", b, 1, b, 2.L, b);
  twice(9, 1, 2, 3, 4, 5, 6, 7, 8, 9);
  printf("%d\n", deep(20, 1, 2));
  loops("%d %s %.3f %d %d %d %d", 1, "two", 3.0, 4, 5, 6, 7);
  return 0;
}
