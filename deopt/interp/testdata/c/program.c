// A program's start and end: arguments, handlers, locale, time, signals.
#include <assert.h>
#include <errno.h>
#include <locale.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <limits.h>

extern char **environ;
static jmp_buf here;
static void first(void) { puts("first"); }
static void second(void) {
  puts("second");
  atexit(first);
}
static void handler(int s) { printf("signal %d\n", s); }

int main(int argc, char **argv) {
  printf("%d %s %d\n", argc, argc > 1 ? argv[1] : "none", argv[argc] == NULL);
  printf("%d\n", getenv("REFRAME_NO_SUCH_NAME") == NULL);
  printf("%s %d\n", setlocale(LC_ALL, NULL), setlocale(LC_ALL, "xx_XX") == NULL);
  struct lconv *l = localeconv();
  printf("%s[%s] %d\n", l->decimal_point, l->thousands_sep, l->frac_digits == CHAR_MAX);
  printf("%d\n", signal(SIGINT, handler) == SIG_DFL);
  if (setjmp(here) == 0)
    puts("direct");
  errno = 0;
  void *p = malloc((size_t)-100);
  printf("%d %d\n", p == NULL, errno == ENOMEM);
  void *volatile none = malloc((size_t)1 << (8 * sizeof(size_t) - 1));
  printf("%d\n", none == NULL);
  none = calloc((size_t)1 << (5 * sizeof(size_t)), (size_t)1 << (5 * sizeof(size_t)));
  printf("%d\n", none == NULL);
  p = aligned_alloc(256, 512);
  printf("%d\n", (int)((size_t)p % 256));
  free(p);
  void *q;
  printf("%d\n", posix_memalign(&q, 64, 10));
  printf("%d %d\n", (int)((size_t)q % 64), posix_memalign(&p, 3, 10));
  q = realloc(q, 1000);
  memset(q, 1, 1000);
  q = realloc(q, 5);
  printf("%d\n", ((char *)q)[4]);
  free(q);
  char *z = calloc(10, 10);
  printf("%d\n", z[99]);
  free(z);
  clock_t c = clock();
  printf("%d\n", c >= 0 && clock() >= c && time(NULL) >= 0);
  assert(argc > 0);
  atexit(second);
  atexit(first);
  if (argc > 5)
    return 1;
  exit(argc + 41);
}
