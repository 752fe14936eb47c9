/* A stack of known depth that waits in pause. */
#include <stdio.h>
#include <unistd.h>

static int depth(int n) {
  if (n == 0) {
    pause();
    return 1;
  }
  return 1 + depth(n - 1);
}

int main(void) {
  puts("ready");
  fflush(stdout);
  return depth(5);
}
