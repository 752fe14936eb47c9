// untouched: a process with memory of each kind, in which it has touched one page, ten mebibytes from the start. It prints their addresses, and
// "provided 0" if the kernel does not permit providing pages.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SIZE = 64 << 20, TOUCHED = 10 << 20 };

static char *made(const char *name, int prot, int flags, int fd) {
  char *p = mmap(0, SIZE, prot, flags, fd, 0);
  if (p == MAP_FAILED) return 0;
  if (prot & PROT_WRITE) p[TOUCHED] = 1;
  printf("%s %#lx\n", name, (unsigned long)p);
  return p;
}

int main(void) {
  const int both = PROT_READ | PROT_WRITE, own = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  int file = memfd_create("file", 0);
  if (file < 0 || ftruncate(file, SIZE)) return 1;
  made("private", both, own, -1);
  made("reserved", PROT_NONE, own, -1);
  made("shared", both, MAP_SHARED | MAP_ANONYMOUS, -1);
  made("file", both, MAP_PRIVATE, file);
  int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
  struct uffdio_api api = {.api = UFFD_API};
  if (fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0) {
    char *p = made("provided", both, own, -1);
    struct uffdio_register r = {.range = {(uintptr_t)p, SIZE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    if (!p || ioctl(fd, UFFDIO_REGISTER, &r)) return 2;
  } else {
    printf("provided 0\n");
  }
  printf("ready\n");
  fflush(stdout);
  pause();
}
