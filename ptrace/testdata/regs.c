// regs spin|pause: a second thread with known register values, which spins at the label "spinning" or waits in pause, at the label "paused",
// on its own stack, which ends at "stack_end". registers_test.go has the values. It prints the size of its vector registers in bytes, 32 or
// 64; with 64, it also fills zmm16 to zmm31 and k0 to k7.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

unsigned char vectors[32 * 64];
unsigned long stack[512] __attribute__((aligned(64)));

void hold(long spins, long wide);
__asm__(
  ".text\n"
  "hold:\n"
  "  lea vectors(%rip), %rax\n"
  "  test %rsi, %rsi\n"
  "  jnz 1f\n"
  ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
  "  vmovdqu 64*\\n(%rax), %ymm\\n\n"
  ".endr\n"
  "  jmp 2f\n"
  "1:\n"
  ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
  "  vmovdqu64 64*\\n(%rax), %zmm\\n\n"
  ".endr\n"
  ".irp n, 0,1,2,3,4,5,6,7\n"
  "  kmovq 64*\\n+8(%rax), %k\\n\n"
  ".endr\n"
  "2:\n"
  "  lea stack+2048(%rip), %rsp\n"
  "  mov $0x1111111111111111, %rdx\n"
  "  mov $0x2222222222222222, %rcx\n"
  "  mov $0x3333333333333333, %rbx\n"
  "  mov $0x4444444444444444, %rsi\n"
  "  mov $0x6666666666666666, %rbp\n"
  "  mov $0x8888888888888888, %r8\n"
  "  mov $0x9999999999999999, %r9\n"
  "  mov $0xaaaaaaaaaaaaaaaa, %r10\n"
  "  mov $0xbbbbbbbbbbbbbbbb, %r11\n"
  "  mov $0xcccccccccccccccc, %r12\n"
  "  mov $0xdddddddddddddddd, %r13\n"
  "  mov $0xeeeeeeeeeeeeeeee, %r14\n"
  "  mov $0xffffffffffffffff, %r15\n"
  "  test %rdi, %rdi\n"
  "  mov $0x5555555555555555, %rdi\n"
  "  mov $34, %eax\n"
  "  jz 3f\n"
  "  mov $0x123456789abcdef0, %rax\n"
  ".globl spinning\n"
  "spinning:\n"
  "  jmp spinning\n"
  "3:\n"
  "  syscall\n"
  ".globl paused\n"
  "paused:\n"
  "  jmp 3b\n"
);

static int spins, wide;

static void *thread(void *unused) {
  hold(spins, wide);
  return unused;
}

int main(int argc, char **argv) {
  for (unsigned i = 0; i < sizeof vectors; i++) vectors[i] = i * 7 + i / 64;
  for (unsigned i = 0; i < 512; i++) stack[i] = 0x0101010101010101 * (i & 0xff);
  spins = argc > 1 && !strcmp(argv[1], "spin");
  wide = !!__builtin_cpu_supports("avx512bw");
  pthread_t t;
  if (pthread_create(&t, NULL, thread, NULL)) return 1;
  printf("vectors %d\nready\n", wide ? 64 : 32);
  fflush(stdout);
  for (;;) pause();
}
