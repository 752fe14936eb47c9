// bits32: a 32-bit process waiting in pause. It uses no library, so that gcc -m32 needs none of its own:
// gcc -m32 -nostdlib -static.
static long syscall3(long number, long a, long b, long c) {
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
  return result;
}

void _start(void) {
  enum { WRITE = 4, PAUSE = 29 };
  static const char ready[] = "ready\n";
  syscall3(WRITE, 1, (long)ready, sizeof ready - 1);
  for (;;) syscall3(PAUSE, 0, 0, 0);
}
