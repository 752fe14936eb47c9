// stackend: a thread whose stack is inside memory that the program uses for other purposes, as if the kernel put a mapping after a
// stack. Prints the end of the stack.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void *thread(void *unused) {
  volatile char used[4096];
  for (unsigned i = 0; i < sizeof used; i++) used[i] = 'Z';
  printf("ready\n");
  fflush(stdout);
  for (;;) pause(), used[0] = 'Z';
  return unused;
}

int main(void) {
  enum { stack = 256 << 10, all = 4 << 20 };
  char *m = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (m == MAP_FAILED) return 1;
  memset(m, 1, all);
  pthread_attr_t a;
  pthread_attr_init(&a);
  if (pthread_attr_setstack(&a, m, stack)) return 1;
  printf("ends at %p\n", (void *)(m + stack));
  fflush(stdout);
  pthread_t t;
  if (pthread_create(&t, &a, thread, NULL)) return 1;
  for (;;) pause();
}
