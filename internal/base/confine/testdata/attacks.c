// Prints, for each action that a confined program must not do, whether it succeeds.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void try(const char *about, long result) {
  printf("%s: %s\n", about, result < 0 ? strerror(errno) : "done");
  errno = 0;
}

static long child(long id) {
  if (!id) _exit(0);
  waitpid(id, NULL, 0); // so that its signal does not stop this process once it is traced
  return id;
}

static void *thread(void *p) { return p; }

int main(int argc, char **argv) {
  char byte = 0;
  struct iovec here = {&byte, 1};
  pthread_t id;
  try("read a file", open(argv[1], O_RDONLY));
  try("write to a file", open(argv[1], O_WRONLY));
  try("empty a file", open(argv[1], O_RDONLY | O_TRUNC));
  try("make a file", creat(argv[2], 0600));
  try("make a file without a name", open("/tmp", O_TMPFILE | O_RDONLY, 0600));
  try("open by openat2", syscall(SYS_openat2, AT_FDCWD, argv[1], &(long[3]){O_WRONLY}, sizeof(long[3])));
  try("make a directory", mkdir(argv[2], 0700));
  try("remove a file", unlink(argv[1]));
  try("rename a file", rename(argv[1], argv[2]));
  try("change a file's mode", chmod(argv[1], 0777));
  try("connect", socket(AF_INET, SOCK_STREAM, 0));
  try("connect within the machine", socket(AF_UNIX, SOCK_STREAM, 0));
  try("make a process", child(fork()));
  try("make a process by clone", child(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)));
  try("make a thread", pthread_create(&id, NULL, thread, NULL) ? -1 : pthread_join(id, NULL));
  try("signal its parent", kill(getppid(), 0));
  try("signal a thread of another", syscall(SYS_tgkill, getppid(), getppid(), 0));
  try("signal itself", syscall(SYS_tgkill, getpid(), getpid(), 0));
  try("be traced", ptrace(PTRACE_TRACEME, 0, 0, 0));
  try("read another's memory", process_vm_readv(getppid(), &here, 1, &here, 1, 0));
  try("limit another", prlimit(getppid(), RLIMIT_CORE, NULL, NULL));
  try("become root", setuid(0));
  try("make a key", syscall(SYS_keyctl, 0, -3, 1));
  try("ask for io_uring", syscall(SYS_io_uring_setup, 1, malloc(512)));
  try("load a program of BPF", syscall(SYS_bpf, 0, malloc(128), 128));
  try("take 4 GiB", mmap(NULL, 4L << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0);
  return 0;
}
