// nojit: a program without JIT code, waiting in pause. Built with -m32 it is the 32-bit process.
#include <stdio.h>
#include <unistd.h>

int main(void) {
  puts("ready");
  fflush(stdout);
  for (;;) pause();
}
