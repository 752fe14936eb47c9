// yama COMMAND [ARG...]: runs a command as under a kernel with Yama and ptrace_scope 1, for processes without CAP_SYS_PTRACE: a process may be
// traced by its ancestors, and by the one that it named with PR_SET_PTRACER (prctl(2); Documentation/admin-guide/LSM/Yama.rst).
//
// It stands in for a kernel that has no Yama: it receives ptrace(2), process_vm_readv(2), process_vm_writev(2) and prctl(2)
// (seccomp_unotify(2)), and checks the parents of processes. It does not simulate opening /proc/PID/mem and pidfd_getfd(2), which Yama denies
// too, /proc/sys/kernel/yama, which does not exist, and relations that end with a thread. Run the command without CAP_SYS_PTRACE (setpriv(1)):
// Yama permits that capability, and this program does not check it.
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// field is a number of /proc/PID/status, or -1.
static int field(int pid, const char *name) {
  char path[64], line[256];
  snprintf(path, sizeof path, "/proc/%d/status", pid);
  FILE *f = fopen(path, "r");
  int value = -1;
  while (f && fgets(line, sizeof line, f))
    if (!strncmp(line, name, strlen(name))) value = atoi(line + strlen(name));
  if (f) fclose(f);
  return value;
}

// The permissions by PR_SET_PTRACER, by process; any permits all.
enum { MANY = 4096, ANY = -1 };
static struct { int tracee, tracer; } named[MANY];

static void name(int tracee, int tracer) {
  static unsigned next;
  for (unsigned i = 0; i < MANY; i++)
    if (named[i].tracee == tracee) named[i].tracee = 0;
  if (tracer) named[next].tracee = tracee, named[next].tracer = tracer, next = (next + 1) % MANY;
}

static int descends(int pid, int from) {
  for (int up = 0; pid > 0 && up < 1000; up++, pid = field(pid, "PPid:"))
    if (pid == from) return 1;
  return 0;
}

static int may(int tracer, int tracee) {
  tracer = field(tracer, "Tgid:");
  tracee = field(tracee, "Tgid:");
  if (tracee < 0 || tracer == tracee || descends(tracee, tracer)) return 1; // the kernel itself refuses an ended process
  for (unsigned i = 0; i < MANY; i++)
    if (named[i].tracee == tracee && (named[i].tracer == ANY || descends(tracer, named[i].tracer))) return 1;
  return 0;
}

static int refused(const struct seccomp_notif *n) {
  const __u64 *a = n->data.args;
  switch (n->data.nr) {
  case SYS_ptrace: // the filter passes only requests to attach
  case SYS_process_vm_readv:
  case SYS_process_vm_writev:
    return !may(n->pid, n->data.nr == SYS_ptrace ? (int)a[1] : (int)a[0]);
  case SYS_prctl: name(field(n->pid, "Tgid:"), (int)a[1]);
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 2) return fprintf(stderr, "usage: yama COMMAND [ARG...]\n"), 64;
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IF(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
  struct sock_filter code[] = {
      LOAD(arch), IF(AUDIT_ARCH_X86_64, 0, 11),
      LOAD(nr), IF(SYS_process_vm_readv, 8, 0), IF(SYS_process_vm_writev, 7, 0), IF(SYS_ptrace, 0, 3),
      LOAD(args[0]), IF(PTRACE_ATTACH, 4, 0), IF(PTRACE_SEIZE, 3, 4),
      IF(SYS_prctl, 0, 3), LOAD(args[0]), IF(PR_SET_PTRACER, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof code / sizeof *code, code};
  if (geteuid() && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return perror("yama: prctl"), 1;
  int fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
  if (fd < 0) return perror("yama: seccomp"), 1;
  pid_t command = fork();
  if (command == 0) {
    close(fd);
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    _exit(127);
  }
  for (int status;;) {
    struct pollfd p = {fd, POLLIN, 0};
    if (poll(&p, 1, 100) > 0 && p.revents & POLLIN) {
      struct seccomp_notif n = {0};
      struct seccomp_notif_resp r = {0};
      if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &n)) continue; // it was killed meanwhile
      r.id = n.id;
      if (refused(&n)) r.error = -EPERM;
      else r.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
      ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &r);
    } else if (waitpid(command, &status, WNOHANG) == command) {
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
  }
}
