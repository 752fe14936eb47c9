// Runs work() in four coroutines that hand over to each other in pass(). STACK(k) is the place of the stack of the k-th one: stacks lie in the order in which they
// begin, or in the opposite order. With HANDMADE the switch is one in assembly, otherwise swapcontext(3). With DROP the first coroutine is
// given up in its second pass(), and the last one begins on its stack.
#include <stdio.h>
#include <stdlib.h>

#define N 4
#define SIZE 65536
long work(long);
static char *stacks;
static int alive[N], current;
static long out[N];

#ifdef HANDMADE
static void *saved[N], *host;
void switch_to(void **from, void *to);
__asm__("switch_to: push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15; mov %rsp, (%rdi); mov %rsi, %rsp\n"
        "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp; ret");
static void hand_over(int from, int to) { switch_to(&saved[from], saved[to]); }
static void leave(int from) { switch_to(&saved[from], host); }
#else
#include <ucontext.h>
static ucontext_t saved[N], host;
static void hand_over(int from, int to) { swapcontext(&saved[from], &saved[to]); }
static void leave(int from) { setcontext(&host); }
#endif

static void next(int me) {
  for (int d = 1; d <= N; d++) {
    int k = (me + d) % N;
    if (!alive[k]) continue;
    if (k == me) return;
    current = k;
    hand_over(me, k);
    return;
  }
  leave(me);
}

static void begin(int k, int on);

long pass(long i) {
#ifdef DROP
  static int passed;
  if (current == 0 && alive[0] && ++passed == 2) {
    alive[0] = 0;
    begin(N - 1, 0);
  }
#endif
  next(current);
  return i * 7;
}

static void body(void) {
  int k = current;
  out[k] = work(3 + k);
  alive[k] = 0;
  next(k);
}

// The stack of a coroutine that gives itself up is still in use until it hands over: the new one begins on it in the same place.
static void begin(int k, int on) {
  char *low = stacks + STACK(on) * SIZE;
#ifdef HANDMADE
  void **top = (void **)(low + SIZE);
  *--top = 0;
  *--top = 0; // where body() would return to
  *--top = body;
  for (int n = 0; n < 6; n++) *--top = 0;
  saved[k] = top;
#else
  getcontext(&saved[k]);
  saved[k].uc_stack.ss_sp = low;
  saved[k].uc_stack.ss_size = SIZE;
  makecontext(&saved[k], body, 0);
#endif
  alive[k] = 1;
}

int main(void) {
  stacks = malloc(N * SIZE);
#ifdef DROP
  for (int k = 0; k < N - 1; k++) begin(k, k);
#else
  for (int k = 0; k < N; k++) begin(k, k);
#endif
#ifdef HANDMADE
  switch_to(&host, saved[0]);
#else
  swapcontext(&host, &saved[0]);
#endif
  for (int k = 0; k < N; k++) printf("%ld\n", out[k]);
  return 0;
}
