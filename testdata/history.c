// Calls inner from code without CFI in a mapping, and then after from the same code, on a deeper stack. It makes no system call between these, so a
// debugger can record the history.
#include <string.h>
#include <sys/mman.h>

static volatile int calls;

__attribute__((noinline)) void inner(void) { calls++; }
__attribute__((noinline)) void after(void) { calls++; }

typedef void compiled(void (*)(void));

__attribute__((noinline)) void deeper(compiled *code) {
  code(after);
  calls++; // no tail call
}

int main(void) {
  static const unsigned char code[] = {
      0x55,             // push %rbp
      0x48, 0x89, 0xe5, // mov %rsp,%rbp
      0xff, 0xd7,       // call *%rdi
      0x5d,             // pop %rbp
      0xc3,             // ret
  };
  char *at = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return 1;
  memcpy(at + 256, code, sizeof code);
  ((compiled *)(at + 256))(inner);
  deeper((compiled *)(at + 256));
  return 0;
}
