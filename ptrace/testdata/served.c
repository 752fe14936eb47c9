// served: a process with a mapping of a file whose file system its tracer serves, with code in the first half and data in the second. It mounts that
// file system on the folder argv[1], in a namespace of its own, and prints the descriptor of /dev/fuse. When SIGUSR1 comes, it maps the file "file",
// prints where, and waits for another one. The first page of code and of data is touched, and a pointer on the stack leads to each second page. The code
// is mapped a second time, where the process may execute it and may not read it.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

enum { PAGE = 4096 };

static void wake(int s) { (void)s; }

int main(int argc, char **argv) {
  char text[256];
  int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC), file;
  signal(SIGUSR1, wake);
  snprintf(text, sizeof text, "fd=%d,rootmode=40000,user_id=%d,group_id=%d", fuse, getuid(), getgid());
  if (argc < 2 || fuse < 0 || unshare(CLONE_NEWNS) || mount(0, "/", 0, MS_REC | MS_PRIVATE, 0)) return 1;
  if (mount("served", argv[1], "fuse", 0, text)) return 2;
  printf("fuse %d\nready\n", fuse);
  fflush(stdout);
  pause();
  snprintf(text, sizeof text, "%s/file", argv[1]);
  if ((file = open(text, O_RDONLY)) < 0) return 3;
  volatile char *code = mmap(0, 2 * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
  volatile char *data = mmap(0, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 2 * PAGE);
  volatile char *only = mmap(0, 2 * PAGE, PROT_EXEC, MAP_PRIVATE, file, 0);
  volatile char *into[] = {code + PAGE + 16, data + PAGE + 16};
  if (code == MAP_FAILED || data == MAP_FAILED || only == MAP_FAILED || code[64] + data[64] != 2 * (char)0xc3) return 4;
  printf("code %#lx\ndata %#lx\nonly %#lx\nmapped\n", (unsigned long)code, (unsigned long)data, (unsigned long)only);
  fflush(stdout);
  __asm__ volatile("" ::"r"(into) : "memory");
  pause();
  __asm__ volatile("" ::"r"(into) : "memory");
  printf("done\n");
  return 0;
}
