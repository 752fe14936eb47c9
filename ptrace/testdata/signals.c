// signals: waits in pause and counts each SIGRTMIN that it gets, and the number sent along with it. At SIGUSR1 it
// writes "signals COUNT sum SUM".
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile long count, sum;

static void counted(int s, siginfo_t *info, void *unused) {
  (void)s, (void)unused;
  count++;
  sum += info->si_value.sival_int;
}

static void report(int s) {
  (void)s;
  dprintf(1, "signals %ld sum %ld\n", count, sum);
}

int main(void) {
  struct sigaction a = {.sa_sigaction = counted, .sa_flags = SA_SIGINFO};
  sigaction(SIGRTMIN, &a, NULL);
  signal(SIGUSR1, report);
  puts("ready");
  fflush(stdout);
  for (;;) pause();
}
