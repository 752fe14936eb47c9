// Calls one of the functions of a module, in a process that may have a handler for the signal which ends it.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

long load(long *, long), divide(long, long), trap(long), call(long *), deep(long);
long table[4] = {1, 2, 3, 4};

static void leave(int signal) { _exit(3); }
static void again(int number) { signal(number, SIG_DFL); }

long native(long *p) { return *(volatile long *)p; }

int main(int argc, char **argv) {
  static char *mode;
  mode = argv[1];
  if (argc > 2) signal(SIGSEGV, strcmp(argv[2], "again") ? leave : again);
  if (!strcmp(mode, "load")) return load(table, 3);
  if (!strcmp(mode, "nowhere")) return load((long *)4096, 3);
  if (!strcmp(mode, "divide")) return divide(5, 0);
  if (!strcmp(mode, "trap")) return trap(5);
  if (!strcmp(mode, "call")) return call((long *)4096);
  if (!strcmp(mode, "small")) { // a stack of which little is left
    setrlimit(RLIMIT_STACK, &(struct rlimit){1 << 19, 1 << 19});
    return deep(3);
  }
  if (!strcmp(mode, "deep")) return deep(3000);
  return 0;
}
