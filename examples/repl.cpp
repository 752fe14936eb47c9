// A stackmap from C or C++, wherever clang is the compiler: one declaration makes a function of LLVM's intrinsic. For clang-repl:
//
//   printf '#include "repl.cpp"\nwork(1000);\n' | clang-repl-19 -Xcc=-O1 &
//   clang++-19 -O1 -fno-discard-value-names -S -emit-llvm repl.cpp
//   reframe frames -p $! --ir repl.ll
//
// clang-repl keeps its IR to itself; clang makes the same of the same text with the same flags, and names what is in it.
#include <stdio.h>
#include <unistd.h>

extern "C" void stackmap(long id, int nops, ...) noexcept __asm("llvm.experimental.stackmap"); // id and nops are constants; it may not be invoked

static __attribute__((noinline)) void tick(long i) {
  if (i != 26) return;
  printf("pid %d stands at i = %ld\n", getpid(), i), fflush(stdout);
  sleep(600);
  _exit(0);
}

extern "C" long work(long n) {
  long acc = 0;
  for (long i = 0; i < n; i++) {
    tick(i);
    stackmap(1, 0, i, acc, n); // right behind a call, so that a frame which waits in it stands here
    acc += i * i;
  }
  return acc;
}
