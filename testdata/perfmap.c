// perfmap HOW: makes code in anonymous memory, which calls pause, and writes its name for perf, or another one:
//
//	map      /tmp/perf-PID.map, with an entry before that was overwritten
//	memfd    the same of code in a memfd, deleted in a file that was removed
//	none     nothing
//	space    in a pid and a mount namespace of its own, in a child
//	link     the map is a symbolic link, fifo a pipe
//	foreign  it belongs to user 12345, old is from before the process began
//	dump     /tmp/jit-PID.dump in place of the map, mapped as perf wants it
//	late     the same, but the code is no longer that function; other: it belongs to another process
//
// The process that started this one removes the file.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static int is(const char *how, const char *what) { return !strcmp(how, what); }

static void check(int ok, const char *what) {
  if (!ok) {
    perror(what);
    exit(1);
  }
}

// dump writes a jitdump (tools/perf/Documentation/jitdump-specification.txt) and maps it.
static void dump(const char *how, char *at, const unsigned char *code, size_t size) {
  struct {
    uint32_t magic, version, total_size, elf_mach, pad1, pid;
    uint64_t timestamp, flags;
    uint32_t id, record_size;
    uint64_t when;
    uint32_t load_pid, tid;
    uint64_t vma, code_addr, code_size, index;
    char function[sizeof "_ZN2ns8compiledEi"];
  } file = {0x4A695444, 1, 40, 62, 0, getpid() + is(how, "other"), 1, 0,
            0, 16 + 40 + sizeof "_ZN2ns8compiledEi" + size, 1, getpid(), getpid(), (long)at, (long)at, size, 1, "_ZN2ns8compiledEi"};
  char name[64];
  snprintf(name, sizeof name, "/tmp/jit-%d.dump", getpid());
  unlink(name);
  int fd = open(name, O_CREAT | O_RDWR, 0644);
  check(fd >= 0 && write(fd, &file, offsetof(__typeof__(file), function) + sizeof file.function) > 0 && write(fd, code, size) > 0, name);
  check(mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED, "mmap");
}

int main(int argc, char **argv) {
  check(argc == 2, "usage");
  // push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret
  static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
  const char *how = argv[1];
  if (is(how, "space")) {
    check(unshare(CLONE_NEWPID | CLONE_NEWNS) == 0, "unshare");
    if (fork()) {
      for (;;) pause();
    }
    check(mount(0, "/", 0, MS_REC | MS_PRIVATE, 0) == 0 && mount("none", "/tmp", "tmpfs", 0, 0) == 0, "mount");
  }
  int fd = -1, flags = MAP_PRIVATE | MAP_ANONYMOUS;
  char name[64];
  if (is(how, "memfd")) fd = memfd_create("code", 0);
  if (is(how, "deleted")) {
    strcpy(name, "/tmp/perfmap-code-XXXXXX");
    fd = mkstemp(name);
    unlink(name);
  }
  if (fd >= 0) {
    check(ftruncate(fd, 4096) == 0, "ftruncate");
    flags = MAP_SHARED;
  }
  char *at = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, flags, fd, 0);
  check(at != MAP_FAILED, "mmap");
  memcpy(at + 256, code, sizeof code);

  snprintf(name, sizeof name, "/tmp/perf-%d.map", getpid());
  unlink(name);
  if (is(how, "link")) {
    char to[80];
    snprintf(to, sizeof to, "%s.real", name);
    close(open(to, O_WRONLY | O_CREAT | O_TRUNC, 0644));
    check(symlink(to, name) == 0, "symlink");
  }
  static const unsigned char earlier[sizeof code] = {0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90};
  if (is(how, "dump") || is(how, "late") || is(how, "other")) {
    dump(how, at + 256, is(how, "late") ? earlier : code, sizeof code);
  } else if (is(how, "fifo")) {
    check(mkfifo(name, 0644) == 0, "mkfifo");
  } else if (!is(how, "none")) {
    FILE *f = fopen(name, "w");
    check(f != 0, name);
    fprintf(f, "%lx 400 freed_long_ago\n", (long)at);
    fprintf(f, "%lx %zx _ZN2ns8compiledEi\n", (long)at + 256, sizeof code);
    fflush(f);
    if (is(how, "foreign")) check(fchown(fileno(f), 12345, 12345) == 0, "fchown");
    struct timespec old[2] = {{1, 0}, {1, 0}};
    if (is(how, "old")) check(futimens(fileno(f), old) == 0, "futimens");
  }
  printf("code at %p\nready\n", at + 256);
  fflush(stdout);
  for (;;) ((void (*)(int (*)(void)))(at + 256))(pause);
}
