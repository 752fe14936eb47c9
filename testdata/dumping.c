// dumping SCHEDULE: a JIT that dumps its IR while it runs. It executes the lines of the file SCHEDULE in order:
//
//	dump FROM TO SIZE   writes the first SIZE bytes of FROM to TO, all of it for -1
//	load N OBJECT       loads and registers OBJECT as number N
//	call N A B          calls its function f(A, B)
//
// f calls cb or other, each of which writes its two arguments to standard output: so they are known without any stack map.
//
// Built with -I demo/target and -no-pie: loaded code and its functions are less than 2 GiB apart, as calls require.
#include "gdbjit.h"
#include "load.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 64, PAGE = 4096 };

static void cb(int64_t x, int64_t y) { printf("values %ld %ld\n", x, y); }
static void other(int64_t x, int64_t y) { printf("values %ld %ld\n", x, y); }

static uint64_t resolve(const char *name) { return !strcmp(name, "cb") ? (uint64_t)cb : !strcmp(name, "other") ? (uint64_t)other : 0; }

static _Noreturn void die(const char *what) {
  perror(what);
  exit(1);
}

static char *read_file(const char *name, size_t *size) {
  int f = open(name, O_RDONLY);
  char *content = malloc(1 << 20);
  ssize_t n = f < 0 || !content ? -1 : read(f, content, 1 << 20);
  if (n < 0) die(name);
  close(f);
  *size = n;
  return content;
}

static void dump(const char *from, const char *to, long most) {
  size_t size;
  char *content = read_file(from, &size);
  int f = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (most >= 0 && (size_t)most < size) size = most;
  if (f < 0 || write(f, content, size) != (ssize_t)size) die(to);
  close(f);
  free(content);
}

int main(int argc, char **argv) {
  static void *objects[MOST];
  static struct jit_code_entry entries[MOST];
  FILE *schedule = argc == 2 ? fopen(argv[1], "r") : NULL;
  if (!schedule) die("schedule");
  setvbuf(stdout, NULL, _IOLBF, 0);
  char line[4096], a[2048], b[2048];
  long n, x, y;
  while (fgets(line, sizeof line, schedule)) {
    if (sscanf(line, "dump %2047s %2047s %ld", a, b, &x) == 3) {
      dump(a, b, x);
    } else if (sscanf(line, "load %ld %2047s", &n, a) == 2 && n >= 0 && n < MOST) {
      size_t size;
      objects[n] = read_file(a, &size);
      struct layout l = lay_out(objects[n], PAGE);
      void *memory = mmap(NULL, l.offset[GROUPS], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
      if (memory == MAP_FAILED || load(objects[n], memory, resolve) || mprotect(memory, l.offset[GROUPS], PROT_READ | PROT_EXEC)) die("load");
      entries[n].symfile_addr = objects[n];
      entries[n].symfile_size = size;
      jit_register(&entries[n]);
    } else if (sscanf(line, "call %ld %ld %ld", &n, &x, &y) == 3 && n >= 0 && n < MOST && objects[n]) {
      ((int64_t(*)(int64_t, int64_t))function_address(objects[n], "f"))(x, y);
    } else {
      die(line);
    }
  }
}
