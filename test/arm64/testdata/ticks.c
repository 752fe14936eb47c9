// ticks THREADS ROUNDS calls the entry of tick.ll from threads, as obj_host.c does, and prints their checksum.
#include "../../../testdata/programs/checksum.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

int64_t entry(int64_t);

static int threads, rounds;

static void *work(void *argument) {
  uint64_t sum = 0;
  for (int r = 0; r < rounds; r++) {
    int64_t n = (int64_t)r * threads + (intptr_t)argument;
    sum += share(n, entry(n));
  }
  return (void *)sum;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  threads = atoi(argv[1]), rounds = atoi(argv[2]);
  pthread_t all[64];
  if (threads > 64) return 2;
  uint64_t sum = 0;
  for (intptr_t t = 0; t < threads; t++) pthread_create(&all[t], NULL, work, (void *)t);
  for (int t = 0; t < threads; t++) {
    void *one;
    pthread_join(all[t], &one);
    sum += (uint64_t)one;
  }
  printf("checksum %llu\n", (unsigned long long)sum);
  return 0;
}
