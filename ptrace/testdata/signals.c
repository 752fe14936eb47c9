// signals: waits in pause and counts each SIGRTMIN that it gets, and the number sent along with it. At SIGRTMAX it
// writes "signals COUNT sum SUM": of signals that are pending the kernel delivers the one of the lowest number first, so that none is left then.
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
  sigfillset(&a.sa_mask); // otherwise SIGRTMAX could arrive while one is counted and others are pending
  sigaction(SIGRTMIN, &a, NULL);
  signal(SIGRTMAX, report);
  puts("ready");
  fflush(stdout);
  for (;;) pause();
}
