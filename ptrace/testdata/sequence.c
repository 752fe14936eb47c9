// sequence: waits in a restartable sequence (rseq(2)) until the variable changed is not 0. It writes "aborted" if the sequence was aborted after that, as
// the kernel does with one that is interrupted, and "committed" if it was not.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/rseq.h>
#include <unistd.h>

volatile long changed;

__attribute__((noinline)) long site(long n) {
  __asm__ volatile("nop");
  return n;
}

static void *rest(void *p) {
  for (;;) pause();
  return p;
}

static int commits(struct rseq *area) {
#if defined __x86_64__
  __asm__ volatile goto(
      ".pushsection __rseq_cs, \"aw\"\n.balign 32\n3: .long 0, 0\n.quad 1f, 2f - 1f, 4f\n.popsection\n"
      "leaq 3b(%%rip), %%rax\nmovq %%rax, %0\n"
      "1: cmpq $0, %1\nje 1b\n"
      "2: jmp 5f\n.long 0x53053053\n4: jmp %l[aborted]\n5:\n"
      :
      : "m"(area->rseq_cs), "m"(changed)
      : "rax", "memory", "cc"
      : aborted);
#else
  __asm__ volatile goto(
      ".pushsection __rseq_cs, \"aw\"\n.balign 32\n3: .long 0, 0\n.quad 1f, 2f - 1f, 4f\n.popsection\n"
      "adrp x9, 3b\nadd x9, x9, :lo12:3b\nstr x9, %0\n"
      "1: ldr x9, %1\ncbz x9, 1b\n"
      "2: b 5f\n.inst 0xd428bc00\n4: b %l[aborted]\n5:\n"
      :
      : "m"(area->rseq_cs), "m"(changed)
      : "x9", "memory", "cc"
      : aborted);
#endif
  return 1;
aborted:
  return 0;
}

int main(void) {
  pthread_t t;
  pthread_create(&t, NULL, rest, NULL);
  struct rseq *area = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
  puts("ready");
  fflush(stdout);
  while (!changed)
    if (commits(area)) {
      puts("committed");
      return 0;
    }
  puts("aborted");
  return 0;
}
