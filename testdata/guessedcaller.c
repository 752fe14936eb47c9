// Makes code without CFI that moves its stack pointer by a number in memory, and waits in a function that the code calls. Only a scan of the stack
// finds the caller of the code.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void wait_here(void) {
  puts("ready");
  fflush(stdout);
  for (;;) pause();
}

int main(void) {
  static const unsigned char code[] = {
      0xbd, 1, 0, 0, 0, // mov $1,%ebp: no frame pointer
      0x48, 0x2b, 0x26, // sub (%rsi),%rsp
      0xff, 0xd7,       // call *%rdi
      0x48, 0x03, 0x26, // add (%rsi),%rsp
      0xc3,             // ret
  };
  char *at = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return 1;
  memcpy(at + 256, code, sizeof code);
  static long by = 4104;
  ((void (*)(void (*)(void), long *))(at + 256))(wait_here, &by);
  return 0;
}
