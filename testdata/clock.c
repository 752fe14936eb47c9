// clock SAMPLERS SLEEPERS [SHARERS]: SAMPLERS threads read CLOCK_MONOTONIC in a tight loop and keep the largest distance between two
// readings, which is the time for which the process was stopped; SLEEPERS threads sleep. SHARERS threads do the same as SAMPLERS, but
// share one reading: if there are more of them than processors, each waits for its turn while others read. At each SIGUSR1 the
// process writes "gap NANOSECONDS", the largest since the last time, and starts over.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static atomic_int running;
static atomic_long largest;

static long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void *sampler(void *unused) {
  atomic_fetch_add(&running, 1);
  for (long before = now(), after;; before = after) {
    after = now();
    long seen = atomic_load_explicit(&largest, memory_order_relaxed);
    while (after - before > seen && !atomic_compare_exchange_weak(&largest, &seen, after - before)) {}
  }
  return unused;
}

static atomic_long last;

static void *sharer(void *unused) {
  atomic_fetch_add(&running, 1);
  for (;;) {
    long after = now(), before = atomic_exchange(&last, after);
    if (!before) continue;
    long seen = atomic_load_explicit(&largest, memory_order_relaxed);
    while (after - before > seen && !atomic_compare_exchange_weak(&largest, &seen, after - before)) {}
  }
  return unused;
}

static void *sleeper(void *unused) {
  atomic_fetch_add(&running, 1);
  for (;;) pause();
  return unused;
}

int main(int argc, char **argv) {
  void *(*const kinds[])(void *) = {sampler, sleeper, sharer};
  int wanted = 0;
  sigset_t usr1;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &usr1, NULL); // inherited by every thread; the main thread takes it with sigwait
  for (int k = 0; k < 3; k++)
    for (int n = k + 1 < argc ? atoi(argv[k + 1]) : 0; n > 0; n--) {
      pthread_t t;
      if (pthread_create(&t, NULL, kinds[k], NULL)) { fputs("pthread_create failed\n", stderr); return 1; }
      wanted++;
    }
  while (atomic_load(&running) < wanted) usleep(1000);
  atomic_store(&largest, 0);
  dprintf(1, "ready\n");
  for (int s;;)
    if (!sigwait(&usr1, &s)) dprintf(1, "gap %ld\n", atomic_exchange(&largest, 0));
}
