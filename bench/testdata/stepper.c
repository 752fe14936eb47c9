// stepper PID ADDRESS attaches to a process that waits, sets a breakpoint at the address, in hex, prints "ready",
// steps over the breakpoint until the process has ended, and prints how often that was. It reads and keeps no values and stops
// no other thread, so no tool that uses breakpoints and ptrace(2) is faster. Only one thread reaches the breakpoint; it may
// start later.
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

static void must(const char *what, long result) {
  if (result != -1) return;
  perror(what);
  exit(1);
}

int main(int argc, char **argv) {
  if (argc != 3) return 64;
  pid_t pid = atoi(argv[1]), tid;
  void *at = (void *)strtoul(argv[2], NULL, 16);
  int status;
  must("attach", ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACECLONE));
  must("interrupt", ptrace(PTRACE_INTERRUPT, pid, 0, 0));
  must("wait", waitpid(pid, &status, __WALL));
  long code = ptrace(PTRACE_PEEKTEXT, pid, at, 0), trap = (code & ~0xffL) | 0xcc;
  must("set", ptrace(PTRACE_POKETEXT, pid, at, trap));
  must("continue", ptrace(PTRACE_CONT, pid, 0, 0));
  puts("ready");
  fflush(stdout);
  long stops = 0;
  while ((tid = waitpid(-1, &status, __WALL)) > 0) {
    if (!WIFSTOPPED(status)) continue;
    if (status >> 16 || WSTOPSIG(status) != SIGTRAP) {
      must("pass on", ptrace(PTRACE_CONT, tid, 0, status >> 16 ? 0 : WSTOPSIG(status)));
      continue;
    }
    struct user_regs_struct r;
    must("read registers", ptrace(PTRACE_GETREGS, tid, 0, &r));
    r.rip--;
    must("write registers", ptrace(PTRACE_SETREGS, tid, 0, &r));
    must("take out", ptrace(PTRACE_POKETEXT, tid, at, code));
    must("step", ptrace(PTRACE_SINGLESTEP, tid, 0, 0));
    must("wait", waitpid(tid, &status, __WALL));
    must("set", ptrace(PTRACE_POKETEXT, tid, at, trap));
    must("continue", ptrace(PTRACE_CONT, tid, 0, 0));
    stops++;
  }
  printf("%ld\n", stops);
  return 0;
}
