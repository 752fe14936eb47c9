// Loads a relocatable x86-64 ELF object the way RuntimeDyld does: its allocated sections are laid out in memory,
// relocated there, and their addresses written to sh_addr of the object's own section headers, where the readers
// of the GDB JIT interface look for them. Freestanding. It loads only objects that were built beside it: sizes
// and offsets are not checked against hostile values.
#ifndef LOAD_H
#define LOAD_H
#include <elf.h>
#include <stddef.h>
#include <stdint.h>

enum { CODE, READ_ONLY, WRITABLE, GROUPS };

// The memory an object needs. Each group of sections starts at a multiple of `page`, so that the groups can have
// different protections.
struct layout {
  size_t page, offset[GROUPS + 1]; // group g is at offset[g] up to offset[g + 1]
};

// Returns the address of a symbol that the object does not define, or 0.
typedef uint64_t resolver(const char *name);

static inline Elf64_Shdr *sections(void *object) {
  return (Elf64_Shdr *)((char *)object + ((Elf64_Ehdr *)object)->e_shoff);
}

static inline int section_count(void *object) { return ((Elf64_Ehdr *)object)->e_shnum; }

static inline size_t align_up(size_t n, size_t to) { return to > 1 ? (n + to - 1) / to * to : n; }

static inline int group_of(const Elf64_Shdr *s) {
  if (!(s->sh_flags & SHF_ALLOC) || s->sh_size == 0) return -1;
  return s->sh_flags & SHF_EXECINSTR ? CODE : s->sh_flags & SHF_WRITE ? WRITABLE : READ_ONLY;
}

// Gives each allocated section an offset, which it leaves in sh_addr.
static inline struct layout lay_out(void *object, size_t page) {
  struct layout l = {page, {0}};
  size_t end = 0;
  for (int g = 0; g < GROUPS; g++) {
    l.offset[g] = end = align_up(end, page);
    for (int i = 0; i < section_count(object); i++) {
      Elf64_Shdr *s = &sections(object)[i];
      if (group_of(s) != g) continue;
      s->sh_addr = align_up(end, s->sh_addralign);
      end = s->sh_addr + s->sh_size;
    }
  }
  l.offset[GROUPS] = align_up(end, page);
  return l;
}

static inline Elf64_Shdr *symbol_table(void *object) {
  for (int i = 0; i < section_count(object); i++)
    if (sections(object)[i].sh_type == SHT_SYMTAB) return &sections(object)[i];
  return NULL;
}

static inline const char *symbol_name(void *object, const Elf64_Sym *symbol) {
  return (char *)object + sections(object)[symbol_table(object)->sh_link].sh_offset + symbol->st_name;
}

static inline uint64_t symbol_address(void *object, const Elf64_Sym *symbol, resolver *resolve) {
  if (symbol->st_shndx == SHN_UNDEF) return resolve(symbol_name(object, symbol));
  if (symbol->st_shndx == SHN_ABS) return symbol->st_value;
  return sections(object)[symbol->st_shndx].sh_addr + symbol->st_value;
}

// Applies one relocation of section `target`; System V ABI, AMD64 supplement, table 4.9. Returns 0, or its type
// if it cannot be applied.
static inline int relocate(void *object, const Elf64_Shdr *target, const Elf64_Rela *r, resolver *resolve) {
  const Elf64_Sym *symbols = (Elf64_Sym *)((char *)object + symbol_table(object)->sh_offset);
  uint64_t place = target->sh_addr + r->r_offset;
  uint64_t s = symbol_address(object, &symbols[ELF64_R_SYM(r->r_info)], resolve), value = s + r->r_addend;
  int type = ELF64_R_TYPE(r->r_info);
  if (s == 0) return type;
  switch (type) {
  case R_X86_64_64:
    *(uint64_t *)place = value;
    return 0;
  case R_X86_64_PC32:
  case R_X86_64_PLT32:
    value -= place;
    *(int32_t *)place = (int32_t)value;
    return (int64_t)value == (int32_t)value ? 0 : type;
  default:
    return type;
  }
}

// Copies the sections to memory, relocates them, and leaves their addresses in sh_addr. `object` has been laid
// out; `memory` is writable, zeroed and aligned to the layout's page. Returns 0, or the type of a relocation that cannot be applied.
static inline int load(void *object, void *memory, resolver *resolve) {
  for (int i = 0; i < section_count(object); i++) {
    Elf64_Shdr *s = &sections(object)[i];
    if (group_of(s) < 0) continue;
    s->sh_addr += (uint64_t)memory;
    for (size_t n = 0; s->sh_type != SHT_NOBITS && n < s->sh_size; n++)
      ((char *)s->sh_addr)[n] = ((char *)object)[s->sh_offset + n];
  }
  for (int i = 0; i < section_count(object); i++) {
    Elf64_Shdr *s = &sections(object)[i], *target = &sections(object)[s->sh_info];
    if (s->sh_type != SHT_RELA || group_of(target) < 0) continue;
    const Elf64_Rela *r = (Elf64_Rela *)((char *)object + s->sh_offset);
    for (size_t n = 0; n < s->sh_size / sizeof *r; n++) {
      int failed = relocate(object, target, &r[n], resolve);
      if (failed) return failed;
    }
  }
  return 0;
}

// The address of a function that the loaded object defines, or 0.
static inline uint64_t function_address(void *object, const char *name) {
  const Elf64_Shdr *table = symbol_table(object);
  const Elf64_Sym *symbols = (Elf64_Sym *)((char *)object + table->sh_offset);
  for (size_t n = 0; n < table->sh_size / sizeof *symbols; n++) {
    const char *a = symbol_name(object, &symbols[n]), *b = name;
    while (*a && *a == *b) a++, b++;
    if (*a == *b && symbols[n].st_shndx != SHN_UNDEF) return symbol_address(object, &symbols[n], NULL);
  }
  return 0;
}
#endif
