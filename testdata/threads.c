// threads SLEEPERS SPINNERS WAITERS CHURNERS: a process with that many threads asleep in nanosleep, spinning,
// blocked in a futex, and starting and joining short-lived threads without end. The main thread waits in pause.
//
// No signal handler is installed, so no system call may ever be interrupted: a sleeper or a waiter that wakes
// up prints "disturbed" and ends the process with status 1. This detects a tool that disturbs the process.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_int running;
static int word;

static _Noreturn void disturbed(const char *what, int error) {
  dprintf(1, "disturbed: %s: errno %d\n", what, error);
  _exit(1);
}

static void *sleeper(void *unused) {
  atomic_fetch_add(&running, 1);
  struct timespec day = {86400, 0};
  int r = nanosleep(&day, NULL);
  disturbed("nanosleep", r ? errno : 0);
  return unused;
}

static void *spinner(void *unused) {
  atomic_fetch_add(&running, 1);
  for (volatile unsigned long n = 0;; n++) {}
  return unused;
}

static void *waiter(void *unused) {
  atomic_fetch_add(&running, 1);
  long r = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
  disturbed("futex", r ? errno : 0);
  return unused;
}

static void *short_lived(void *unused) { return unused; }

static void *churner(void *unused) {
  atomic_fetch_add(&running, 1);
  for (;;) {
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
      if ((errno = pthread_create(&t[i], NULL, short_lived, NULL))) disturbed("pthread_create", errno);
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
  }
  return unused;
}

int main(int argc, char **argv) {
  void *(*const kinds[])(void *) = {sleeper, spinner, waiter, churner};
  int wanted = 0;
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 64 << 10);
  for (int k = 0; k < 4; k++)
    for (int n = k + 1 < argc ? atoi(argv[k + 1]) : 0; n > 0; n--) {
      pthread_t t;
      if ((errno = pthread_create(&t, &small, kinds[k], NULL))) { perror("pthread_create"); return 1; }
      wanted++;
    }
  while (atomic_load(&running) < wanted) usleep(1000);
  dprintf(1, "ready\n");
  for (;;) pause();
}
