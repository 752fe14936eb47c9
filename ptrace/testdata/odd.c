// odd: a process with misleading mappings. Its own executable is mapped once more, as data, below where it runs; a file
// that it maps was replaced by a named pipe; and the code that waits in pause lies in a memfd, which is no ELF image. It
// registers no JIT object.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct { uint32_t version, action; void *relevant, *first; } __jit_debug_descriptor = {1, 0, 0, 0};

static int failed(const char *what) {
  perror(what);
  return 1;
}

int main(void) {
  int self = open("/proc/self/exe", O_RDONLY);
  struct stat st;
  if (self < 0 || fstat(self, &st)) return failed("self");
  if (mmap((void *)0x10000000, st.st_size, PROT_READ, MAP_PRIVATE | MAP_FIXED_NOREPLACE, self, 0) == MAP_FAILED) return failed("mmap self");

  // A file that is mapped and was replaced by a pipe of the same name: opening it would wait for a writer.
  int fd = open("pipe", O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (fd < 0 || ftruncate(fd, 4096) || mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED) return failed("pipe");
  if (unlink("pipe") || mkfifo("pipe", 0600)) return failed("mkfifo");

  // Much more than is copied completely: the kernel may provide the only used page as a part of a huge page.
  enum { JIT_SIZE = 8 << 20 };
  // mov $34, %eax; syscall; jmp back: pause, for ever.
  static const unsigned char code[] = {0xb8, 34, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xf7};
  int jit = memfd_create("jit", 0);
  if (jit < 0 || ftruncate(jit, JIT_SIZE) || pwrite(jit, code, sizeof code, 4096) != sizeof code) return failed("memfd");
  char *mapped = mmap(NULL, JIT_SIZE, PROT_READ | PROT_EXEC, MAP_SHARED, jit, 0);
  if (mapped == MAP_FAILED) return failed("mmap memfd");
  puts("ready");
  fflush(stdout);
  ((void (*)(void))(mapped + 4096))();
}
