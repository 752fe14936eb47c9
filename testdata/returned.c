// Leaves a return address into @f of programs/returned.ll on its stack, and then waits in a function without CFI that has moved its stack pointer
// by an amount that its code does not show: down over the remains of @f. The first argument is its caller, near or far, the second the number of
// bytes that it moves.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

long f(long x, long y);
long near(long x, long by);
long far(long x, long by, void (*to)(long));
void deep(long by);
long saved;

void old(void) {}

void wait_here(void) {
  puts("ready");
  fflush(stdout);
  for (;;) pause();
}

// It has no CFI directives, and its old stack pointer is only in memory.
__asm__(
    ".globl deep\n"
    ".type deep,@function\n"
    "deep:\n"
    "  mov %rsp, saved(%rip)\n"
    "  mov $1, %ebp\n" // no frame pointer
    "  sub %rdi, %rsp\n"
    "  call wait_here\n"
    "  mov saved(%rip), %rsp\n"
    "  ret\n"
    ".size deep, .-deep\n");

// Data that the dynamic linker has left on the stack.
__attribute__((noinline)) static void clear(void) {
  char room[256 << 10];
  memset(room, 0, sizeof room);
  __asm__ volatile("" : : "r"(room) : "memory");
}

__attribute__((noinline)) static long further_down(void) {
  char room[512];
  __asm__ volatile("" : : "r"(room) : "memory");
  long result = f(3, 4);
  __asm__ volatile("" : : "r"(room) : "memory");
  return result;
}

int main(int argc, char **argv) {
  if (argc != 3) return 1;
  long by = strtol(argv[2], NULL, 0);
  int direct = strcmp(argv[1], "near") == 0;
  clear();
  long result = further_down();
  result += direct ? near(12, by) : far(13, by, deep);
  return (int)result;
}
