// Shares a page with a child, which answers each 0 in its first word with 1. With an argument there is no child.
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

long answered(volatile long *, volatile long *, long);

int main(int argc, char **argv) {
  volatile long *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  volatile long *own = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  page[0] = 1;
  int child = argc > 1 ? 0 : fork();
  if (argc == 1 && child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
      if (page[0] == 0) page[0] = 1;
  }
  long result = answered(page, own, argc > 1 ? 10 : 20000);
  if (argc == 1) {
    kill(child, SIGKILL);
    waitpid(child, 0, 0);
  }
  return result != 7;
}
