// corrupt loop|wild|wildfile|hugesize|badmagic|truncated: a process whose list of JIT objects is broken, waiting
// in pause. The list is that of the GDB manual, "JIT Compilation Interface".
#include "../internal/demo/target/gdbjit.h"

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// An object without any section is well-formed and holds nothing.
static Elf64_Ehdr empty = {
  .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
  .e_type = ET_REL, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
  .e_ehsize = sizeof(Elf64_Ehdr), .e_shentsize = sizeof(Elf64_Shdr),
};

static void *const wild = (void *)0x00005ead00000000;

int main(int argc, char **argv) {
  static struct jit_code_entry a = {0, 0, &empty, sizeof empty}, b = {0, 0, &empty, sizeof empty};
  const char *how = argc > 1 ? argv[1] : "";
  a.next = &b, b.prev = &a;
  if (!strcmp(how, "loop")) b.next = &a;
  else if (!strcmp(how, "wild")) b.next = wild;
  else if (!strcmp(how, "wildfile")) b.symfile_addr = wild;
  else if (!strcmp(how, "hugesize")) b.symfile_size = UINT64_MAX / 2;
  else if (!strcmp(how, "badmagic")) b.symfile_addr = "this is not an object file; it is a line of text, of no use.....";
  else if (!strcmp(how, "truncated")) empty.e_shoff = sizeof empty, empty.e_shnum = 7, empty.e_shstrndx = 6;
  else { fprintf(stderr, "corrupt: no such way: %s\n", how); return 1; }
  __jit_debug_descriptor.first_entry = &a;
  __jit_debug_register_code();
  puts("ready");
  fflush(stdout);
  for (;;) pause();
}
