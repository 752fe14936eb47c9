// leader: a process whose first thread ends at SIGUSR1, while a second one keeps waiting in pause.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *thread(void *unused) {
  for (;;) pause();
  return unused;
}

int main(void) {
  sigset_t usr1;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &usr1, NULL);
  pthread_t t;
  if (pthread_create(&t, NULL, thread, NULL)) return 1;
  puts("ready");
  fflush(stdout);
  int s;
  sigwait(&usr1, &s);
  syscall(SYS_exit, 0);
}
