// Memory that a handler of SIGSEGV makes accessible when it is touched, as runtimes commit heaps, watch guard pages and note stores. HOW says by what, BEFORE how it
// was protected, FILL that the page gets other content.
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 1 << 20, PAGE = 4096 };
long *heap, touched;
long barrier(long), reads(long), loop(long);
void serve(long);
void finish(void) { _exit(0); }

static void on_touch(int signal, siginfo_t *info, void *context) {
  char *page = (char *)((unsigned long)info->si_addr & -(unsigned long)PAGE);
  touched++;
#ifdef MAP
  mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
#else
  mprotect(page, PAGE, PROT_READ | PROT_WRITE);
#endif
#ifdef FILL
  memset(page, 17, PAGE);
#endif
}

int main(int argc, char **argv) {
  struct sigaction action = {.sa_sigaction = on_touch, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &action, 0);
  heap = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < BYTES / 8; i += PAGE / 8) heap[i] = i;
#ifdef MAP
  munmap(heap, BYTES);
#else
  mprotect(heap, BYTES, BEFORE);
#endif
  for (long i = 0; i < 3; i++) {
    barrier(i * 512);
    reads(i * 512 + 5 * 512);
  }
  heap += 20 * 512;
  loop(4);
  heap += 20 * 512;
  serve(argc > 1 ? atoi(argv[1]) : 4);
}
