// protected: a process with two pages, of which userfaultfd write-protects the first. No process removes the protection. It prints their addresses,
// and waits.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096 };

int main(void) {
  int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
  struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP};
  if (fd < 0 || ioctl(fd, UFFDIO_API, &api)) return 1;
  char *p = mmap(0, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(p, 1, 2 * PAGE);
  struct uffdio_register r = {.range = {(uintptr_t)p, PAGE}, .mode = UFFDIO_REGISTER_MODE_WP};
  struct uffdio_writeprotect w = {.range = {(uintptr_t)p, PAGE}, .mode = UFFDIO_WRITEPROTECT_MODE_WP};
  if (ioctl(fd, UFFDIO_REGISTER, &r) || ioctl(fd, UFFDIO_WRITEPROTECT, &w)) return 2;
  printf("page %#lx\nready\n", (unsigned long)p);
  fflush(stdout);
  for (;;) pause();
}
