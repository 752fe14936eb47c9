// All functions that read standard input.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void) {
  int c = getchar();
  printf("%c", c);
  ungetc('!', stdin);
  ungetc('?', stdin);
  printf("%c%c", getc(stdin), fgetc(stdin));
  char b[32];
  size_t n = fread(b, 3, 4, stdin);
  printf("%zu %.12s\n", n, b);
  char line[200];
  printf("%d %s", fgets(line, sizeof line, stdin) == line, line);
  printf("%s\n", fgets(line, 8, stdin));
  int words = 0, lines = 0, in = 0;
  while ((c = getchar()) != EOF) {
    lines += c == '\n';
    if (c == ' ' || c == '\n')
      in = 0;
    else if (!in)
      words += in = 1;
  }
  printf("%d %d %d %d\n", lines, words, feof(stdin) != 0, ferror(stdin));
  clearerr(stdin);
  printf("%d %d\n", feof(stdin), getchar());
  printf("%d %d %d\n", fileno(stdin), fileno(stdout), fileno(stderr));
  printf("%d ", isatty(0));
  printf("%s\n", strerror(errno));
  n = fread(b, 1, sizeof b, stdin);
  printf("%zu %zd\n", n, read(0, b, 4));
  fflush(stdout);
  write(1, "written\n", 8);
  write(2, "wrong\n", 6);
  puts("puts");
  fputs("fputs\n", stdout);
  fputc('c', stdout);
  putc('\n', stdout);
  n = fwrite("fwrite....", 5, 2, stdout);
  printf(" %zu\n", n);
  errno = ENOENT;
  perror("text");
  errno = 0;
  perror(NULL);
  printf("%ld %d\n", ftell(stdin), fseek(stdin, 0, SEEK_SET));
  printf("%ld %d %d\n", (long)lseek(1, 0, SEEK_CUR), close(77), errno);
  return fclose(stdout);
}
