// Files as streams, in an empty working directory but for "given".
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRY(x) (errno = 0, result = (long)(x), printf("%s: %ld %d\n", #x, result, errno))

static long result;

int main(void) {
  char buffer[100], *line = NULL;
  size_t size = 0;
  int number = 0;
  TRY(fopen("none", "r") != NULL);
  TRY(fopen("none", "q") != NULL);
  TRY(fopen("none/below", "w") != NULL);
  TRY(fopen(".", "w") != NULL);
  FILE *f = fopen("given", "r");
  TRY(f != NULL);
  TRY(fileno(f));
  TRY(fgetc(f));
  TRY(ungetc('#', f));
  TRY(ftell(f));
  TRY(fgets(buffer, sizeof buffer, f) == buffer);
  fputs(buffer, stdout);
  TRY(ftell(f));
  TRY(fscanf(f, "%d", &number));
  printf("%d\n", number);
  TRY(getline(&line, &size, f));
  TRY(getline(&line, &size, f));
  printf("%s", line);
  TRY(fseek(f, -4, SEEK_END));
  TRY(fread(buffer, 3, 5, f));
  TRY(feof(f) != 0);
  TRY(fgetc(f));
  TRY(fseek(f, 0, SEEK_SET));
  TRY(feof(f) != 0);
  TRY(fseek(f, -1, SEEK_SET));
  TRY(fseek(f, 0, 9));
  TRY(fputc('x', f));
  TRY(ferror(f) != 0);
  clearerr(f);
  TRY(ferror(f) != 0);
  fpos_t at;
  TRY(fgetc(f));
  TRY(fgetpos(f, &at));
  TRY(fgetc(f));
  TRY(fsetpos(f, &at));
  TRY(fgetc(f));
  rewind(f);
  TRY(getc_unlocked(f));
  TRY(fclose(f));

  f = fopen("made", "wx");
  TRY(f != NULL);
  TRY(fopen("made", "wx") != NULL);
  TRY(fprintf(f, "%s %d\n", "line", 1));
  TRY(fwrite("second\nthird\n", 1, 13, f));
  TRY(putc('!', f));
  TRY(fputs("ok\n", f) >= 0);
  TRY(fgetc(f));
  TRY(ftell(f));
  TRY(fseek(f, 30, SEEK_SET));
  TRY(putc('e', f));
  TRY(fseek(f, 0, SEEK_SET));
  TRY(putc('L', f));
  TRY(fflush(f));
  TRY(setvbuf(f, NULL, _IOFBF, 4096) >= 0);
  TRY(fclose(f));
  f = fopen("made", "a+");
  TRY(fgetc(f));
  TRY(fseek(f, 0, SEEK_CUR));
  TRY(fputs("appended\n", f) >= 0);
  TRY(ftell(f));
  rewind(f);
  while ((number = fgetc(f)) != EOF) printf(" %d", number);
  puts("");
  TRY(fclose(f));
  f = fopen("made", "r+");
  TRY(fread(buffer, 1, 5, f));
  TRY(fseek(f, 0, SEEK_CUR));
  TRY(fwrite("*", 1, 1, f));
  TRY(fseek(f, 0, SEEK_CUR));
  TRY(fgetc(f));
  TRY(fclose(f));
  f = fopen("made", "w+");
  TRY(fgetc(f));
  rewind(f);
  TRY(fputs("whole", f) >= 0);
  rewind(f);
  TRY(fgetc(f));
  TRY(ungetc('W', f));
  TRY(fseek(f, 1, SEEK_CUR));
  TRY(fgetc(f));
  TRY(fclose(f));

  int fd = open("other", O_RDWR | O_CREAT, 0600);
  f = fdopen(fd, "w");
  TRY(f != NULL);
  TRY(fprintf(f, "by descriptor %d\n", 1));
  TRY(fflush(f));
  TRY(lseek(fd, 0, SEEK_CUR));
  TRY(fclose(f));
  TRY(close(fd));
  fd = open("other", O_RDONLY);
  TRY(fdopen(fd, "w") != NULL);
  TRY(fdopen(fd, "q") != NULL);
  TRY(close(fd));
  TRY(fdopen(fd, "r") != NULL);
  f = tmpfile();
  TRY(f != NULL);
  TRY(fputs("temporary", f) >= 0);
  rewind(f);
  TRY(fread(buffer, 1, sizeof buffer, f));
  printf("%.9s\n", buffer);
  TRY(fclose(f));
  f = fopen("/dev/null", "r+");
  TRY(fgetc(f));
  rewind(f);
  TRY(fputs("nobody reads it", f) >= 0);
  TRY(fclose(f));
  TRY(remove("other"));
  TRY(fopen("other", "r") != NULL);
  TRY(ftell(stdin));
  return 0;
}
