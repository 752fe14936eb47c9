// moment [deleted]: a process whose memory differs from its files, and changes completely at SIGUSR1. It waits in pause before
// and after that. It has written the first page of its file. Pages that its stack points to, and the bytes after something like a
// stack map, contain As: later they contain Bs, or are unmapped.
//
// deleted: it runs from a copy of itself that was deleted.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 16 };

extern char __executable_start[];

// The dynamic linker relocates it before it makes it read-only.
void *const table[4 * PAGE / sizeof(void *)] = {[0 ... 4 * PAGE / sizeof(void *) - 1] = __executable_start};

static volatile sig_atomic_t go;
static void on_signal(int s) { (void)s; go = 1; }

static char *map(size_t size, int protection) {
  return mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static int run_copy(void) {
  int from = open("/proc/self/exe", O_RDONLY), to = open("copy", O_CREAT | O_WRONLY | O_EXCL, 0700);
  struct stat st;
  if (from < 0 || to < 0 || fstat(from, &st) || sendfile(to, from, NULL, st.st_size) != st.st_size) return 1;
  close(to);
  execl("./copy", "copy", "copied", (char *)NULL);
  return 1;
}

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "deleted")) return run_copy();
  if (argc > 1 && unlink("copy")) return 1;
  char *code = map(PAGE, PROT_READ | PROT_EXEC), *found = map(2 * PAGE, PROT_READ | PROT_WRITE);
  char *volatile pages[PAGES];
  for (int i = 0; i < PAGES; i++) memset(pages[i] = map(PAGE, PROT_READ | PROT_WRITE), 'A', PAGE);
  // Version 3, one function, no constants, one record; its function, its record without locations and live-outs.
  static struct { uint8_t version[4]; uint32_t functions, constants, records; uint64_t function, stack, count, id; uint32_t offset, none; uint64_t more; } stack_map =
      {{3}, 1, 0, 1, 0, 8, 1, 7, 0, 0, 0};
  stack_map.function = (uint64_t)code;
  memset(found, 'A', 2 * PAGE);
  memcpy(found + 64, &stack_map, sizeof stack_map);
  if (mprotect(__executable_start, PAGE, PROT_READ | PROT_WRITE)) return 1;
  __executable_start[10] = 'P'; // bytes of the file's identification that are not checked
  if (mprotect(__executable_start, PAGE, PROT_READ)) return 1;
  signal(SIGUSR1, on_signal);
  puts("ready");
  fflush(stdout);
  while (!go) pause();
  for (int i = 0; i < PAGES / 2; i++) madvise(pages[i], PAGE, MADV_DONTNEED);
  for (int i = PAGES / 2; i < PAGES; i++) memset(pages[i], 'B', PAGE);
  memset(found + 64 + sizeof stack_map, 'B', 2 * PAGE - 64 - sizeof stack_map);
  for (;;) pause();
}
