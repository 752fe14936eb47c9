// undumpable: a program that has made itself not dumpable, waiting in pause: only CAP_SYS_PTRACE permits tracing it (PR_SET_DUMPABLE of prctl(2)).
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(void) {
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)) return 1;
  puts("ready");
  fflush(stdout);
  for (;;) pause();
}
