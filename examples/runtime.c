// The runtime of host.c and host.cpp. `make runtime.ll` compiles it to IR, so that the interpreter can resume through the calls that
// compiled code makes.
#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int stops = 1;
int64_t (*baseline)(int64_t);

static void stand(void) {
  if (!stops) return;
  printf("pid %d stopped at i = %d\n", getpid(), STOP);
  fflush(stdout);
  sleep(600);
  exit(0);
}

int64_t square(int64_t i) {
  if (i == STOP) stand();
  return i * i;
}

void tick(int64_t i) {
  if (i == STOP) stand();
}

// A deoptimize exit calls this. Its argument is that of the call in the IR.
_Noreturn void __llvm_deoptimize(int64_t reason) {
  (void)reason;
  stand();
  leave_optimized(baseline(N));
}
