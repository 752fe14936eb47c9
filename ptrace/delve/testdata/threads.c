// 12 threads that sleep again and again: a step of one of them ends soon, which it would not in pause.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *rest(void *unused) {
  for (;;) usleep(100000);
  return unused;
}

int main(void) {
  pthread_t thread;
  for (int i = 0; i < 12; i++)
    if (pthread_create(&thread, 0, rest, 0)) return 1;
  puts("ready");
  fflush(stdout);
  pause();
}
