// without NAME[=EPERM]... -- COMMAND [ARG...]: runs a command for which the kernel has no such system calls (ENOSYS), or denies them (EPERM): a
// filter of seccomp(2) stands in for a kernel that was built without them, or a container that forbids them. Names are those of the table below.
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct { const char *name; int number; } calls[] = {
    {"userfaultfd", SYS_userfaultfd},
    {"kcmp", SYS_kcmp},
    {"process_vm_readv", SYS_process_vm_readv},
    {"process_vm_writev", SYS_process_vm_writev},
    {"ptrace", SYS_ptrace},
    {"pidfd_open", SYS_pidfd_open},
    {"memfd_create", SYS_memfd_create},
};

static int number(const char *name, size_t length) {
  for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++)
    if (strlen(calls[i].name) == length && !strncmp(calls[i].name, name, length)) return calls[i].number;
  fprintf(stderr, "without: %s is not in its table\n", name);
  _exit(64);
}

int main(int argc, char **argv) {
  struct sock_filter code[64] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW), // no 32-bit program makes these calls
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
  };
  int n = 4, at = 1;
  for (; at < argc && strcmp(argv[at], "--") && n < 60; at++) {
    size_t length = strcspn(argv[at], "=");
    int error = strcmp(argv[at] + length, "=EPERM") ? ENOSYS : EPERM;
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number(argv[at], length), 0, 1);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
  }
  code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  if (at + 1 >= argc) {
    fprintf(stderr, "usage: without NAME[=EPERM]... -- COMMAND [ARG...]\n");
    return 64;
  }
  struct sock_fprog program = {n, code};
  // Root need not set no_new_privs, and programs that it starts as other users stay unaffected.
  if (geteuid() && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return perror("without: prctl"), 1;
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)) return perror("without: seccomp"), 1;
  execvp(argv[at + 1], argv + at + 1);
  return perror(argv[at + 1]), 127;
}
