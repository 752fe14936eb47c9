// Loads a relocatable x86-64 object that uses libraries: like internal/demo/target/load.h, with a global offset table and
// stubs for undefined symbols. It loads only our own objects: values are not checked.
#ifndef OBJ_LOAD_H
#define OBJ_LOAD_H
#ifndef CODE_MAPPING
#define CODE_MAPPING MAP_PRIVATE
#endif

#include "gdbjit.h"
#include "load.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096 };

// A stub is `jmp *2(%rip)` and the address it goes to, 8 bytes further on.
struct stub {
  uint8_t code[8];
  uint64_t to;
};

struct loaded {
  char *object; // the file, with the addresses of the sections in its headers
  size_t object_size;
  char *memory;
  size_t size;
  uint64_t *got;      // an entry for each symbol of the object
  struct stub *stubs; // likewise
  struct jit_code_entry entry;
};

static _Noreturn void die(const char *what, const char *which) {
  fprintf(stderr, "obj_host: %s: %s\n", what, which);
  exit(1);
}

static uint64_t outside(const char *name) { return (uint64_t)dlsym(RTLD_DEFAULT, name); }

// place applies one relocation; System V ABI, AMD64 supplement, section 4.4.
static void place(struct loaded *l, const Elf64_Shdr *target, const Elf64_Rela *r) {
  const Elf64_Sym *symbols = (Elf64_Sym *)(l->object + symbol_table(l->object)->sh_offset);
  size_t index = ELF64_R_SYM(r->r_info);
  const Elf64_Sym *symbol = &symbols[index];
  uint64_t p = target->sh_addr + r->r_offset, a = r->r_addend, got = (uint64_t)l->got;
  uint64_t s = l->got[index], slot = (uint64_t)&l->got[index];
  uint64_t near = symbol->st_shndx == SHN_UNDEF ? (uint64_t)&l->stubs[index] : s;
  uint64_t value;
  int type = ELF64_R_TYPE(r->r_info), global = type == R_X86_64_GOTPC64 || type == R_X86_64_GOTPC32; // of nobody's symbol
  if (s == 0 && !global) die("no such symbol", symbol_name(l->object, symbol));
  switch (type) {
  case R_X86_64_64: *(uint64_t *)p = s + a; break;
  case R_X86_64_PC64: *(uint64_t *)p = s + a - p; break;
  case R_X86_64_GOTOFF64:
  case R_X86_64_PLTOFF64: *(uint64_t *)p = s + a - got; break;
  case R_X86_64_GOT64: *(uint64_t *)p = slot + a - got; break;
  case R_X86_64_GOTPC64: *(uint64_t *)p = got + a - p; break;
  case R_X86_64_GOTPC32: value = got + a - p; goto word;
  case R_X86_64_GOTPCREL:
  case R_X86_64_GOTPCRELX:
  case R_X86_64_REX_GOTPCRELX: value = slot + a - p; goto word;
  case R_X86_64_PC32:
  case R_X86_64_PLT32: value = near + a - p; goto word;
  default: die("unknown relocation for", symbol_name(l->object, symbol));
  }
  return;
word:
  if ((int64_t)value != (int32_t)value) die("out of reach", symbol_name(l->object, symbol));
  *(int32_t *)p = (int32_t)value;
}

static void place_all(struct loaded *l) {
  for (int i = 0; i < section_count(l->object); i++) {
    Elf64_Shdr *s = &sections(l->object)[i], *target = &sections(l->object)[s->sh_info];
    if (s->sh_type != SHT_RELA || group_of(target) < 0) continue;
    const Elf64_Rela *r = (Elf64_Rela *)(l->object + s->sh_offset);
    for (size_t n = 0; n < s->sh_size / sizeof *r; n++) place(l, target, &r[n]);
  }
}

static void read_file(struct loaded *l, const char *path) {
  struct stat st;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &st)) die("cannot open", path);
  l->object_size = st.st_size;
  l->object = malloc(l->object_size);
  if (read(fd, l->object, l->object_size) != st.st_size) die("cannot read", path);
  close(fd);
}

// load_object loads a file into its own memory and registers it with the GDB JIT interface.
static struct loaded *load_object(const char *path) {
  static const int protection[GROUPS] = {PROT_READ | PROT_EXEC, PROT_READ, PROT_READ | PROT_WRITE};
  struct loaded *l = calloc(1, sizeof *l);
  read_file(l, path);
  struct layout out = lay_out(l->object, PAGE);
  size_t count = symbol_table(l->object)->sh_size / sizeof(Elf64_Sym);
  size_t got = out.offset[GROUPS], stubs = got + align_up(count * sizeof *l->got, PAGE);
  l->size = stubs + align_up(count * sizeof *l->stubs, PAGE);
  l->memory = mmap(NULL, l->size, PROT_READ | PROT_WRITE, CODE_MAPPING | MAP_ANONYMOUS, -1, 0);
  if (l->memory == MAP_FAILED) die("mmap failed for", path);
  l->got = (uint64_t *)(l->memory + got);
  l->stubs = (struct stub *)(l->memory + stubs);
  for (int i = 0; i < section_count(l->object); i++) {
    Elf64_Shdr *s = &sections(l->object)[i];
    if (group_of(s) < 0) continue;
    s->sh_addr += (uint64_t)l->memory;
    if (s->sh_type != SHT_NOBITS) memcpy((void *)s->sh_addr, l->object + s->sh_offset, s->sh_size);
  }
  const Elf64_Sym *symbols = (Elf64_Sym *)(l->object + symbol_table(l->object)->sh_offset);
  for (size_t n = 1; n < count; n++) {
    if (ELF64_ST_TYPE(symbols[n].st_info) == STT_FILE) continue;
    l->got[n] = symbol_address(l->object, &symbols[n], outside);
    l->stubs[n] = (struct stub){{0xff, 0x25, 2, 0, 0, 0, 0x66, 0x90}, l->got[n]};
  }
  place_all(l);
  for (int g = 0; g < GROUPS; g++)
    if (mprotect(l->memory + out.offset[g], out.offset[g + 1] - out.offset[g], protection[g])) die("mprotect failed for", path);
  if (mprotect(l->got, stubs - got, PROT_READ) || mprotect(l->stubs, l->size - stubs, PROT_READ | PROT_EXEC))
    die("mprotect failed for", path);
  l->entry.symfile_addr = l->object;
  l->entry.symfile_size = l->object_size;
  jit_register(&l->entry);
  return l;
}

// unload_object removes an object from the list, notifies the debugger, and frees its memory.
static void unload_object(struct loaded *l) {
  struct jit_code_entry *e = &l->entry;
  if (e->next) e->next->prev = e->prev;
  *(e->prev ? &e->prev->next : &__jit_debug_descriptor.first_entry) = e->next;
  __jit_debug_descriptor.relevant_entry = e;
  __jit_debug_descriptor.action_flag = 2; // JIT_UNREGISTER_FN
  __jit_debug_register_code();
  munmap(l->memory, l->size);
  free(l->object);
  free(l);
}
#endif
