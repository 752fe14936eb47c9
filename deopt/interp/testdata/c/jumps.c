// setjmp and longjmp as programs use them. Variables that change after setjmp and are read after longjmp are volatile.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static jmp_buf top;

static void values(void) {
  static const int list[] = {1, -1, 0, 7, 0x7fffffff, -0x7fffffff - 1};
  volatile unsigned k = 0;
  int got = setjmp(top);
  if (got)
    printf("value %d\n", got);
  if (k < sizeof list / sizeof *list)
    longjmp(top, list[k++]);
}

__attribute__((noinline)) static void dive(int depth, jmp_buf to) {
  volatile char room[100];
  memset((char *)room, depth, sizeof room);
  if (depth == 0)
    longjmp(to, room[99] + 42);
  dive(depth - 1, to);
  puts("not reached");
}

static void deep(void) {
  jmp_buf here;
  for (volatile int depth = 0; depth < 2000; depth = depth * 3 + 1) {
    int got = setjmp(here);
    if (!got)
      dive(depth, here);
    printf("depth %d: %d\n", depth, got);
  }
}

// try, catch and finally as a chain of handlers, as in many C programs.
struct handler {
  struct handler *outer;
  jmp_buf buf;
  const char *message;
};
static struct handler *chain;

static void raised(const char *message) {
  if (!chain) {
    printf("nobody handles %s\n", message);
    exit(9);
  }
  chain->message = message;
  _longjmp(chain->buf, 1);
}

static int guarded(int (*f)(int), int x) {
  struct handler h = {chain, {0}, NULL};
  volatile int result = -1;
  chain = &h;
  if (_setjmp(h.buf) == 0)
    result = f(x);
  else
    printf("handled %s for %d\n", h.message, x);
  chain = h.outer;
  return result;
}

static int odd(int x) {
  if (x % 2 == 0)
    raised("even");
  return x;
}

static int twice(int x) {
  int sum = guarded(odd, x) + guarded(odd, x + 1);
  if (x > 4)
    raised("large");
  return sum;
}

static void handlers(void) {
  for (int x = 1; x < 7; x++)
    printf("twice %d is %d\n", x, guarded(twice, x));
}

// A jump out of a callback of the C library.
static int calls;
static int order(const void *a, const void *b) {
  if (++calls == 5)
    longjmp(top, calls);
  return *(const int *)a - *(const int *)b;
}

static int inner(const void *a, const void *b) {
  jmp_buf here;
  int list[] = {5, 4, 3, 2, 1, 0};
  jmp_buf keep;
  memcpy(keep, top, sizeof keep);
  calls = 0;
  if (setjmp(top) == 0)
    qsort(list, 6, sizeof *list, order);
  memcpy(top, keep, sizeof keep);
  int got = setjmp(here);
  if (got < 3)
    longjmp(here, got + 1);
  return *(const int *)a - *(const int *)b;
}

static void library(void) {
  int list[] = {9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
  calls = 0;
  int got = setjmp(top);
  if (!got)
    qsort(list, 10, sizeof *list, order);
  printf("left qsort after %d comparisons\n", got);
  for (int k = 0; k < 10; k++)
    list[k] = 9 - k; // qsort leaves them in an unspecified order
  qsort(list, 3, sizeof *list, inner);
  printf("%d %d %d\n", list[0], list[1], list[2]);
}

// A buffer may be copied, and may be on the heap.
static void copied(void) {
  jmp_buf *a = malloc(sizeof *a), *b = malloc(sizeof *b);
  volatile int n = 0;
  int got = setjmp(*a);
  memcpy(*b, *a, sizeof *a);
  n++;
  printf("copy %d %d\n", n, got);
  if (n < 4)
    longjmp(n % 2 ? *b : *a, n * 10);
  free(a);
  free(b);
}

static void masks(void) {
  sigjmp_buf buf;
  volatile int n = 0;
  int got = sigsetjmp(buf, 1);
  printf("sigsetjmp %d\n", got);
  if (n++ < 2)
    siglongjmp(buf, 100 + n);
}

// Memory keeps the last stored value, also in an array of variable length.
static void arrays(int n) {
  volatile int fixed[4] = {1, 2, 3, 4};
  volatile int growing[n];
  growing[0] = 0;
  jmp_buf here;
  int got = setjmp(here);
  printf("arrays %d %d %d\n", got, fixed[1], growing[0]);
  volatile int later[got + n];
  later[n - 1 + got] = got;
  fixed[1] += 10;
  growing[0] += 100;
  if (got < 3)
    longjmp(here, got + 1);
  printf("later %d\n", later[n - 1 + got]);
}

// Locals that do not change after setjmp keep their values.
__attribute__((noinline)) static long many(long a, long b, double c, const char *d) {
  jmp_buf here;
  long e = a * b, f = a - b;
  double g = c * 2;
  char s[16];
  strcpy(s, d);
  if (setjmp(here) == 0)
    dive(3, here);
  printf("%ld %ld %g %s %s %ld %ld %g\n", a, b, c, d, s, e, f, g);
  return e + f;
}

struct state {
  void *buf[5];
  int n;
};
__attribute__((noinline)) static void builtin_jump(struct state *s) { __builtin_longjmp(s->buf, 1); }
__attribute__((noinline)) static int builtin_set(struct state *s) {
  if (__builtin_setjmp(s->buf) == 0) {
    s->n++;
    builtin_jump(s);
  }
  return s->n++;
}

int main(void) {
  values();
  deep();
  handlers();
  library();
  copied();
  masks();
  arrays(3);
  printf("%ld\n", many(6, 7, 1.5, "text"));
  struct state s = {{0}, 5};
  for (int k = 0; k < 3; k++)
    printf("builtin %d %d\n", builtin_set(&s), s.n);
  raised("at the end");
}
