// unregistered OBJECT: a host that loads an object file, which llc made of programs/host_mod.ll, twice into one mapping and does not register it. It
// calls the code of the second one, which calls back; there it waits in pause.
//
// Built with -I demo/target. With -DTWICE the mapping is of a memfd, which is mapped a second time, to be written to, as a JIT does that has no memory
// with both rights.
#define _GNU_SOURCE
#include "load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, COPIES = 2 };

static int64_t cb(int64_t a, int64_t b) {
  puts("ready");
  fflush(stdout);
  for (;;) pause();
  return a - b;
}

static uint64_t resolve(const char *name) { return strcmp(name, "cb") ? 0 : (uint64_t)cb; }

int main(int argc, char **argv) {
  static char object[COPIES][1 << 16];
#ifdef TWICE
  int fd = memfd_create("jit", 0);
  if (fd < 0 || ftruncate(fd, COPIES * PAGE)) return 1;
  char *memory = mmap(NULL, COPIES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mmap(NULL, COPIES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED) return 1;
#else
  char *memory = mmap(NULL, COPIES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
#endif
  if (argc != 2 || memory == MAP_FAILED) return 64;
  for (int i = 0; i < COPIES; i++) {
    FILE *f = fopen(argv[1], "rb");
    if (!f || fread(object[i], 1, sizeof object[i], f) == 0) { perror(argv[1]); return 1; }
    fclose(f);
    if (lay_out(object[i], 16).offset[GROUPS] > PAGE || load(object[i], memory + i * PAGE, resolve)) { fputs("unregistered: the object cannot be loaded\n", stderr); return 1; }
  }
  if (mprotect(memory, COPIES * PAGE, PROT_READ | PROT_EXEC)) return 1;
  int64_t (*jf)(int64_t, int64_t, double) = (int64_t(*)(int64_t, int64_t, double))function_address(object[1], "jf");
  printf("%ld\n", jf(1000, 7, 2.5));
}
