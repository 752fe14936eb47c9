// A stackmap from C or C++ with clang: one declaration turns LLVM's intrinsic into a function. For clang-repl:
//
//   printf '#include "repl.cpp"\nwork(1000);\n' | clang-repl-19 -Xcc=-O1 &
//   clang++-19 -O1 -fno-discard-value-names -S -emit-llvm repl.cpp
//   reframe frames -p $! --ir repl.ll
//
// clang-repl does not show its IR. clang makes the same IR from the same text with the same flags, with names.
#include <stdio.h>
#include <unistd.h>

extern "C" void stackmap(long id, int nops, ...) noexcept __asm("llvm.experimental.stackmap"); // id and nops are constants; it may not be invoked

static __attribute__((noinline)) void tick(long i) {
  if (i != 26) return;
  printf("pid %d stopped at i = %ld\n", getpid(), i), fflush(stdout);
  sleep(600);
  _exit(0);
}

extern "C" long work(long n) {
  long acc = 0;
  for (long i = 0; i < n; i++) {
    tick(i);
    stackmap(1, 0, i, acc, n); // right after a call, so a frame that waits in the call is at the stackmap
    acc += i * i;
  }
  return acc;
}
