// A runtime that patches the sites of patching.ll while threads pass them, and prints the number of passes.
//
//	MODE FIRST LAST THREADS PASSES
//
// phases: the passes of each site with nothing patched, with a call patched in, and with that taken out again.
// saves:  saves the code of the sites, patches and passes them; after another line of input restores the saved code, and
// passes them. checks: compares the code with the original before each pass. toggles: patches and restores all the time
// while threads pass. once:   as phases, with only the patched passes. until:  patches, and passes now and then until
// there is another line of input.
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SITES = 6, SIZE = 16 };

typedef long function(long);

static char **sites;
static function **functions;
static char *stub;
static int first, last;
static long passes;
static char original[SITES][SIZE];
static atomic_long passed[SITES], sum, changed;
static atomic_int running;

// filler is a nop of 5 bytes and one of 3: a patched call may return after the first one when the patch was removed
// meanwhile.
static const char filler[8] = {0x0f, 0x1f, 0x44, 0, 0, 0x0f, 0x1f, 0};

static void call(char *to, const char *at) {
  int32_t by = (int32_t)(stub - (at + 5));
  memcpy(to, filler, 8);
  memcpy(to + 8, filler, 8);
  to[0] = (char)0xe8;
  memcpy(to + 1, &by, 4);
}

// store writes the first eight bytes of a site at once.
static void store(char *at, const char *code) {
  long word;
  memcpy(&word, code, 8);
  atomic_store((_Atomic long *)at, word);
}

static void patch(int n) {
  char code[SIZE];
  call(code, sites[n]);
  memcpy(sites[n], code, SIZE);
}

static void pass(int n, long from, long to) {
  for (long i = from; i < to; i++) {
    sum += functions[n](i);
    passed[n]++;
  }
}

static void *thread(void *number) {
  for (int n = first; n <= last; n++)
    pass(n, (long)number * passes, ((long)number + 1) * passes);
  running--;
  return NULL;
}

static void line(void) {
  for (int c = getchar(); c != '\n' && c != EOF;)
    c = getchar();
}

int drive(int argc, char **argv, char **s, function **f, char *to, long *calls) {
  if (argc != 6)
    return 64;
  const char *mode = argv[1];
  sites = s, functions = f, stub = to;
  first = atoi(argv[2]), last = atoi(argv[3]), passes = atol(argv[5]);
  int threads = atoi(argv[4]);
  for (int n = 0; n < SITES; n++) {
    char *page = (char *)((uintptr_t)sites[n] & ~4095ul);
    if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) && mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC))
      return 65;
    if (!strcmp(mode, "toggles")) {
      memcpy(sites[n], filler, 8);
      memcpy(sites[n] + 8, filler, 8);
    }
    memcpy(original[n], sites[n], SIZE);
  }
  puts("ready");
  fflush(stdout);
  line();
  if (!strcmp(mode, "phases") || !strcmp(mode, "once")) {
    int from = mode[0] == 'o', phases = mode[0] == 'o' ? 2 : 3;
    for (int phase = from; phase < phases; phase++)
      for (int n = first; n <= last; n++) {
        if (phase == 1)
          patch(n);
        if (phase == 2)
          memcpy(sites[n], original[n], SIZE);
        pass(n, phase * passes, (phase + 1) * passes);
      }
  } else if (!strcmp(mode, "saves")) {
    char kept[SITES][SIZE];
    for (int n = first; n <= last; n++) {
      memcpy(kept[n], sites[n], SIZE);
      patch(n);
      pass(n, 0, passes);
    }
    puts("patched");
    fflush(stdout);
    line();
    for (int n = first; n <= last; n++) {
      memcpy(sites[n], kept[n], SIZE);
      pass(n, passes, 2 * passes);
    }
  } else if (!strcmp(mode, "until")) {
    for (int n = first; n <= last; n++)
      patch(n);
    struct pollfd input = {0, POLLIN, 0};
    for (long i = 0; !poll(&input, 1, 1); i++)
      for (int n = first; n <= last; n++)
        pass(n, i, i + 1);
  } else if (!strcmp(mode, "checks")) {
    for (long i = 0; i < passes; i++)
      for (int n = first; n <= last; n++) {
        changed += memcmp(sites[n], original[n], SIZE) != 0;
        pass(n, i, i + 1);
      }
  } else if (!strcmp(mode, "toggles")) {
    pthread_t all[64];
    running = threads;
    for (long n = 0; n < threads; n++)
      pthread_create(&all[n], NULL, thread, (void *)n);
    while (running)
      for (int n = first; n <= last; n++) {
        char code[SIZE];
        call(code, sites[n]);
        store(sites[n], code);
        store(sites[n], filler);
      }
    for (int n = 0; n < threads; n++)
      pthread_join(all[n], NULL);
  } else
    return 64;
  for (int n = first; n <= last; n++)
    printf("site %d passed %ld\n", n, (long)passed[n]);
  printf("sum %ld\n", (long)sum);
  printf("changed %ld\n", (long)changed);
  if (strcmp(mode, "toggles"))
    printf("called %ld\n", *calls);
  fflush(stdout);
  return 0;
}
