// copied OBJECT [COPIES [again]]: a host that copies the code of an object file, which llc made of programs/host_mod.ll, after its own prologue,
// and does not register it. It keeps nothing else of the object: neither unwind information nor a stack map is in memory. It prints the address
// of the last copy and calls it through the prologue; the code calls back, and there it waits in pause: forever, or, with a third argument, until
// SIGUSR1, when it calls the code again.
//
// Built with -I demo/target.
#include "load.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, PROLOGUE = 48, MOST = 8 };

static int again;

static int64_t cb(int64_t a, int64_t b) {
  puts("ready");
  fflush(stdout);
  do pause();
  while (!again);
  return a - b;
}

static void handler(int number) { (void)number; }

static uint64_t resolve(const char *name) { return strcmp(name, "cb") ? 0 : (uint64_t)cb; }

int main(int argc, char **argv) {
  static char object[1 << 16];
  int copies = argc > 2 ? atoi(argv[2]) : 1;
  char *memory = mmap(NULL, MOST * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *code = NULL;
  if (argc < 2 || copies < 1 || copies > MOST || memory == MAP_FAILED) return 64;
  for (int i = 0; i < copies; i++) {
    FILE *f = fopen(argv[1], "rb");
    if (!f || fread(object, 1, sizeof object, f) == 0) { perror(argv[1]); return 1; }
    fclose(f);
    char *start = memory + i * PAGE;
    memset(start, 0x90, PROLOGUE); // nop: falls into the first function
    if (lay_out(object, 16).offset[GROUPS] > PAGE - PROLOGUE || load(object, start + PROLOGUE, resolve)) { fputs("copied: the object cannot be loaded\n", stderr); return 1; }
    const Elf64_Shdr *names = &sections(object)[((Elf64_Ehdr *)object)->e_shstrndx];
    for (int k = 0; k < section_count(object); k++) {
      const Elf64_Shdr *s = &sections(object)[k];
      const char *name = object + names->sh_offset + s->sh_name;
      if (group_of(s) >= 0 && (!strcmp(name, ".eh_frame") || !strcmp(name, ".llvm_stackmaps"))) memset((char *)s->sh_addr, 0, s->sh_size);
    }
    code = start + PROLOGUE;
    if (function_address(object, "jf") != (uint64_t)code) { fputs("copied: jf is not the first function\n", stderr); return 1; }
  }
  memset(object, 0, sizeof object);
  if (mprotect(memory, MOST * PAGE, PROT_READ | PROT_EXEC)) return 1;
  printf("code at %p\n", (void *)code);
  int64_t (*jf)(int64_t, int64_t, double) = (int64_t(*)(int64_t, int64_t, double))(code - PROLOGUE);
  again = argc > 3;
  signal(SIGUSR1, handler);
  do printf("%ld\n", jf(1000, 7, 2.5));
  while (again);
}
