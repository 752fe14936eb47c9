// execs N: two threads call f while a third one calls execve, N times one after the other, with N one less each time.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

long f(long, long);
static char **args;

static void *works(void *nothing) {
  for (;;) f(1, 2);
  return nothing;
}

static void *execs(void *nothing) {
  f(3, 4);
  char less[12];
  snprintf(less, sizeof less, "%d", atoi(args[1]) - 1);
  execv("/proc/self/exe", (char *[]){args[0], less, 0});
  return nothing;
}

int main(int argc, char **argv) {
  args = argv;
  f(argc, 4);
  if (atoi(argv[1]) == 0) return 7;
  pthread_t worker[2], other;
  for (int n = 0; n < 2; n++) pthread_create(&worker[n], 0, works, 0);
  pthread_create(&other, 0, execs, 0);
  pthread_join(other, 0);
}
