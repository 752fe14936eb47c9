// again: loaded into a program (LD_PRELOAD), which then executes itself again when it ends.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((destructor)) static void again(void) {
  static char text[4096], *words[64];
  size_t n = 0;
  if (getenv("AGAIN")) return;
  setenv("AGAIN", "1", 1);
  FILE *f = fopen("/proc/self/cmdline", "r");
  if (!f) return;
  size_t size = fread(text, 1, sizeof text - 1, f);
  for (char *p = text; p < text + size && n < 63; p += strlen(p) + 1) words[n++] = p;
  fflush(NULL);
  execv("/proc/self/exe", words);
}
