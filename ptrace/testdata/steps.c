// steps: calls step with known arguments, ten times a second.
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline)) long step(long a, long b, double c) {
  __asm__ volatile("" : "+r"(a), "+r"(b), "+x"(c));
  return a + b + (long)c;
}

int main(void) {
  puts("ready");
  fflush(stdout);
  for (;;) {
    if (step(0x1122334455667788, -2, 2.5) != 0x1122334455667788) return 1;
    usleep(100000);
  }
}
