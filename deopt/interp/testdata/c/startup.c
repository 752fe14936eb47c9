// The functions that run before and after main, in order.
#include <stdio.h>
#include <stdlib.h>

static int made;

__attribute__((constructor(300))) static void third(void) { printf("third %d\n", made++); }
__attribute__((constructor)) static void last(void) { printf("last %d\n", made++); }
__attribute__((constructor(200))) static void first(void) { printf("first %d\n", made++); }
__attribute__((constructor(200))) static void second(void) { printf("second %d\n", made++); }

__attribute__((destructor(300))) static void before(void) { puts("before"); }
__attribute__((destructor)) static void soonest(void) { puts("soonest"); }
__attribute__((destructor(200))) static void latest(void) { puts("latest"); }

static void handler(void) { puts("handler"); }

int main(void) {
  printf("main %d\n", made);
  atexit(handler);
  return made;
}
