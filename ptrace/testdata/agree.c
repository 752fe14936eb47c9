// agree: threads that write increasing numbers into their own cells on their stack, in static memory, on the heap and in shared memory,
// always in the same order: whenever the process is stopped, the numbers of a thread begin with n and end with n or n - 1. Meanwhile
// other threads start and end, and one maps two files in turn at one address, and records before and after that which one.
//
// It prints the addresses for the test, then "ready".
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, THREADS = 3, CELLS = 8, FILES = 200 };

static uint64_t volatile in_bss[THREADS][2][PAGE / 8];
static pthread_barrier_t begin;

static void *new_page(int flags) {
  return mmap(NULL, PAGE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
}

static void *write_numbers(void *argument) {
  long me = (long)argument;
  uint64_t volatile far[3 * PAGE / 8], near = 0;
  uint64_t volatile *cells[CELLS] = {&near, &in_bss[me][0][5], new_page(MAP_PRIVATE), &far[7], (uint64_t *)malloc(64) + 3,
                                     new_page(MAP_SHARED), &in_bss[me][1][17], &far[PAGE / 4 + 1]};
  for (int i = 0; i < CELLS; i++) *cells[i] = 0;
  flockfile(stdout);
  printf("cells");
  for (int i = 0; i < CELLS; i++) printf(" %p", (void *)cells[i]);
  puts("");
  funlockfile(stdout);
  pthread_barrier_wait(&begin);
  for (uint64_t n = 1;; n++)
    for (int i = 0; i < CELLS; i++) *cells[i] = n;
  return NULL;
}

static void *end_at_once(void *argument) { return argument; }

static void *begin_and_end(void *argument) {
  for (;;) {
    pthread_t t;
    if (!pthread_create(&t, NULL, end_at_once, argument)) pthread_join(t, NULL);
    usleep(100);
  }
  return NULL;
}

// copy makes a copy of the program with a mark in its second page.
static int copy(unsigned char mark) {
  char name[16];
  snprintf(name, sizeof name, "copy%d", mark);
  int from = open("/proc/self/exe", O_RDONLY), to = open(name, O_CREAT | O_RDWR, 0700);
  static char b[1 << 20];
  ssize_t n = read(from, b, sizeof b);
  memset(b + PAGE, mark, PAGE);
  if (n < 2 * PAGE || write(to, b, n) != n) exit(1);
  close(from);
  return to;
}

static void *by_turns(void *argument) {
  volatile unsigned char turns[2] = {0, 1};
  int files[FILES];
  for (int i = 0; i < FILES; i++) files[i] = copy(i);
  char *at = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, files[0], PAGE);
  printf("turns %p %p\n", (void *)turns, at);
  pthread_barrier_wait(&begin);
  for (int i = 0;; i = (i + 1) % FILES) {
    turns[0] = i;
    mmap(at, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, files[i], PAGE);
    turns[1] = i;
    usleep(100000);
  }
  return argument;
}

int main(void) {
  pthread_t t;
  pthread_barrier_init(&begin, NULL, THREADS + 2);
  for (long i = 0; i < THREADS; i++) pthread_create(&t, NULL, write_numbers, (void *)i);
  pthread_create(&t, NULL, by_turns, NULL);
  pthread_barrier_wait(&begin);
  pthread_create(&t, NULL, begin_and_end, NULL);
  puts("ready");
  fflush(stdout);
  for (;;) pause();
}
