// sharedcode: two processes run code in one piece of shared memory, as those of a prefork server with a JIT do. The code lies at 0x20000000 and calls a
// function: the parent's code calls called, which lets the child run the same code, compare its bytes, and answer. At the end the parent prints the child's
// status.
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

// sub $8, %rsp; call *%rdi; add $8, %rsp; ret
static const unsigned char code[] = {0x48, 0x83, 0xec, 8, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3};

static int ask[2], answer[2];

static void nothing(void) {}

__attribute__((noinline)) void called(void) {
  char c = 0;
  if (write(ask[1], &c, 1) != 1 || read(answer[0], &c, 1) != 1) puts("the child is gone");
}

int main(void) {
  void *at = mmap((void *)0x20000000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (at == MAP_FAILED || pipe(ask) || pipe(answer)) return 1;
  memcpy(at, code, sizeof code);
  void (*run)(void (*)(void)) = (void (*)(void (*)(void)))at;
  pid_t child = fork();
  if (child == 0) {
    close(ask[1]);
    int changed = 0;
    for (char c; read(ask[0], &c, 1) == 1;) {
      changed |= memcmp(at, code, sizeof code);
      run(nothing);
      if (write(answer[1], &c, 1) != 1) return 2;
    }
    return changed ? 3 : 0;
  }
  close(ask[0]);
  close(answer[1]);
  for (int i = 0; i < 3; i++) run(called);
  close(ask[1]);
  int status;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) printf("child killed by %d\n", WTERMSIG(status));
  else printf("child exited %d\n", WEXITSTATUS(status));
}
