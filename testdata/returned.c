// Leaves a return address into @f of programs/returned.ll on its stack, and then waits in a function without CFI that has moved its stack pointer
// by an amount which its code does not say: down over what @f has left. The first argument says who calls it, near or far, the second by how
// many bytes it moves.
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

// No directive for CFI is in it, and nothing but memory knows what its stack pointer was.
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

// What the dynamic linker has left on the stack.
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
