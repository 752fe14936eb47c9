// The checked calls of _FORTIFY_SOURCE, without any overflow.
#define _FORTIFY_SOURCE 2
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void out(char *to, size_t n, const char *f, ...) {
  va_list ap;
  va_start(ap, f);
  vsnprintf(to, n, f, ap);
  va_end(ap);
  va_start(ap, f);
  vfprintf(stdout, f, ap);
  va_end(ap);
}

int main(int argc, char **argv) {
  char a[32], b[32];
  size_t n = 5 + argc;
  memset(a, 'x', n);
  memcpy(b, a, n);
  memmove(b + 1, b, n);
  strcpy(a, argv[0] + strlen(argv[0]));
  strcat(a, "cat");
  strncat(a, "more", n - 4);
  strncpy(b, "four", n);
  printf("%s %s\n", a, b);
  sprintf(a, "%d %s", argc, b);
  snprintf(b, n, "%s", "cut off");
  fprintf(stdout, "%s %s\n", a, b);
  out(a, n + 10, "%d %s\n", 5, "words");
  fputs(a, stdout);
  while (fgets(a, (int)n, stdin))
    fputs(a, stdout);
  printf("%zu\n", fread(a, 1, n, stdin));
  return 0;
}
