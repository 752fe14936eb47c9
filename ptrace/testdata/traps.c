// traps MODE: runs the command of each byte of standard input, and writes a line with the result.
//   a  the action for SIGTRAP: default, own or other
//   c  calls site(n) for n from 0 to 999 and writes the sum of its results, 1000000
//   f  the action for SIGTRAP in a forked child
//   m  the number of its executable mappings without a file
//   i  runs its own breakpoint instruction
//   1  runs its own INT1
//   s  sends itself SIGTRAP
// Modes: plain; own: it has a handler of SIGTRAP; blocked: it blocks SIGTRAP before each call of site; filter: a seccomp filter ends it at mmap,
// munmap and rt_sigaction.
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) long site(long n) {
  __asm__ volatile("nop");
  return 2 * n + 1;
}

static void own(int s) { (void)s; }

static const char *action(void) {
  struct sigaction a;
  sigaction(SIGTRAP, NULL, &a);
  return a.sa_handler == SIG_DFL ? "default" : a.sa_handler == own ? "own" : "other";
}

static void say(const char *text) { dprintf(1, "%s\n", text); }

static long work(int blocks) {
  sigset_t trap;
  sigemptyset(&trap);
  sigaddset(&trap, SIGTRAP);
  long sum = 0;
  for (long n = 0; n < 1000; n++) {
    if (blocks) sigprocmask(SIG_BLOCK, &trap, NULL);
    sum += site(n);
  }
  return sum;
}

static int mappings(void) {
  FILE *f = fopen("/proc/self/maps", "r");
  char line[512];
  int n = 0;
  while (fgets(line, sizeof line, f)) n += strstr(line, "r-xp") && strstr(line, " 0 \n");
  fclose(f);
  return n;
}

static int filter(void) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_munmap, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigaction, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof code / sizeof *code, code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "plain";
  prctl(PR_SET_DUMPABLE, 1);
  mappings();
  if (!strcmp(mode, "own")) signal(SIGTRAP, own);
  if (!strcmp(mode, "filter") && filter()) return 1;
  say("ready");
  char c;
  while (read(0, &c, 1) == 1) switch (c) {
      case 'a': say(action()); break;
      case 'c': dprintf(1, "%ld\n", work(!strcmp(mode, "blocked"))); break;
      case 'f':
        if (!fork()) {
          dprintf(1, "%s %d\n", action(), mappings());
          _exit(0);
        }
        wait(NULL);
        break;
      case 'm': dprintf(1, "%d\n", mappings()); break;
#ifdef __aarch64__
      case 'i': __asm__ volatile("brk #0"); break;
#else
      case 'i': __asm__ volatile("int3"); break;
      case '1': __asm__ volatile(".byte 0xf1"); break;
#endif
      case 's': raise(SIGTRAP); break;
    }
  say("end");
}
