// claims N MIB zero|noise plain|small|foreign|overlapping: a process with N registered JIT objects that each claim MIB mebibytes, waiting in pause below a
// frame of each. After an object's headers lies untouched private memory (zero), or one mebibyte of other bytes that is mapped again
// and again (noise), so that it has few pages. An object has one section, of code, in all of that memory (plain) or in a page of it (small; or
// foreign, an object of another architecture, in which no thread is), or sections of many kinds, each in all of that memory (overlapping).
//
// Built with -I internal/demo/target.
#define _GNU_SOURCE
#include "gdbjit.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, MIB = 1 << 20 };

static _Noreturn void die(const char *what) {
  fprintf(stderr, "claims: %s: %s\n", what, strerror(errno));
  exit(1);
}

// A function that calls its second argument with its first one. (The ABI of x86-64 and of arm64.)
#ifdef __x86_64__
static const unsigned char code[] = {0x53, 0xff, 0xd6, 0x5b, 0xc3}; // push rbx; call rsi; pop rbx; ret
enum { MACHINE = EM_X86_64 };
#else
static const unsigned char code[] = {0xfd, 0x7b, 0xbf, 0xa9, 0x20, 0x00, 0x3f, 0xd6, 0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6};
enum { MACHINE = EM_AARCH64 };
#endif

static size_t count, left;
static char *functions; // a page of each object

static void descend(void *unused) {
  if (left == 0) {
    puts("ready");
    fflush(stdout);
    for (;;) pause();
  }
  left--;
  ((void (*)(void *, void (*)(void *)))(functions + left * PAGE))(unused, descend);
}

static const char names[] = "\0.text\0.symtab\0.strtab\0.eh_frame\0.llvm_stackmaps\0.debug_line\0.rela.text\0.reframe.ir\0.shstrtab";

static void section(Elf64_Shdr *s, const char *name, uint32_t type, uint64_t off, uint64_t size, uint32_t link, uint64_t row) {
  s->sh_name = (const char *)memmem(names, sizeof names, name, strlen(name) + 1) - names;
  s->sh_type = type, s->sh_offset = off, s->sh_size = size, s->sh_link = link, s->sh_entsize = row, s->sh_addralign = 1;
}

static char *claim(size_t size, const char *kind) {
  char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) die("memory");
  if (!strcmp(kind, "zero")) return at;
  int fd = memfd_create("claims", 0);
  if (fd < 0 || ftruncate(fd, MIB)) die("memfd");
  unsigned char *noise = malloc(MIB);
  uint64_t x = 88172645463325252u;
  for (size_t i = 0; i < MIB; i++) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    noise[i] = x >> 24 | 1;
  }
  if (write(fd, noise, MIB) != MIB) die("write");
  for (size_t off = MIB; off < size; off += MIB)
    if (mmap(at + off, MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) die("memory of a file");
  return at;
}

int main(int argc, char **argv) {
  if (argc != 5) { fputs("usage: claims N MIB zero|noise plain|small|foreign|overlapping\n", stderr); return 64; }
  count = left = atol(argv[1]);
  size_t size = (size_t)atol(argv[2]) * MIB, all = size - MIB;
  int many = !strcmp(argv[4], "overlapping");
  int foreign = !strcmp(argv[4], "foreign");
  if (foreign || !strcmp(argv[4], "small")) all = PAGE;
  functions = mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct jit_code_entry *entries = calloc(count, sizeof *entries);
  if (functions == MAP_FAILED || !entries) die("memory");
  for (size_t i = 0; i < count; i++) {
    memcpy(functions + i * PAGE, code, sizeof code);
    char *object = claim(size, argv[3]);
    Elf64_Ehdr *h = (Elf64_Ehdr *)object;
    memcpy(h->e_ident, (unsigned char[]){ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT}, 7);
    h->e_type = ET_REL, h->e_machine = foreign ? EM_S390 : MACHINE, h->e_version = EV_CURRENT, h->e_ehsize = sizeof *h;
    h->e_shoff = PAGE, h->e_shentsize = sizeof(Elf64_Shdr), h->e_shnum = many ? 10 : 3, h->e_shstrndx = 2;
    Elf64_Shdr *s = (Elf64_Shdr *)(object + PAGE);
    memcpy(object + 2 * PAGE, names, sizeof names);
    section(&s[1], ".text", SHT_PROGBITS, MIB, all, 0, 0);
    s[1].sh_flags = SHF_ALLOC | SHF_EXECINSTR, s[1].sh_addr = (uint64_t)(foreign ? object + MIB : functions + i * PAGE);
    section(&s[2], ".shstrtab", SHT_STRTAB, 2 * PAGE, sizeof names, 0, 0);
    if (many) {
      section(&s[3], ".symtab", SHT_SYMTAB, MIB, all, 4, sizeof(Elf64_Sym));
      section(&s[4], ".strtab", SHT_STRTAB, MIB, all, 0, 0);
      section(&s[5], ".eh_frame", SHT_PROGBITS, MIB, all, 0, 0);
      section(&s[6], ".llvm_stackmaps", SHT_PROGBITS, MIB, all, 0, 0);
      section(&s[7], ".debug_line", SHT_PROGBITS, MIB, all, 0, 0);
      section(&s[8], ".rela.text", SHT_RELA, MIB, all, 3, sizeof(Elf64_Rela));
      s[8].sh_info = 1;
      section(&s[9], ".reframe.ir", SHT_PROGBITS, MIB, all, 0, 0);
      s[5].sh_flags = s[6].sh_flags = SHF_ALLOC;
      s[5].sh_addr = s[6].sh_addr = (uint64_t)object + MIB;
    }
    entries[i].symfile_addr = object, entries[i].symfile_size = size;
    jit_register(&entries[i]);
  }
  if (mprotect(functions, count * PAGE, PROT_READ | PROT_EXEC)) die("mprotect");
  descend(NULL);
}
