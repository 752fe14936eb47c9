// Files by their descriptors, and what is said of them, in an empty working directory but for "given".
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRY(x) (errno = 0, result = (long)(x), printf("%s: %ld %d\n", #x, result, errno))

static long result;

static void show(const char *name) {
  struct stat s;
  if (stat(name, &s)) {
    printf("%s: %s\n", name, strerror(errno));
    return;
  }
  printf("%s: %o %ld %ld\n", name, (unsigned)s.st_mode, S_ISDIR(s.st_mode) ? -1 : (long)s.st_size, S_ISDIR(s.st_mode) ? -1 : (long)s.st_nlink);
}

int main(void) {
  char buffer[5000];
  struct stat s;
  TRY(umask(022));
  TRY(open("none", O_RDONLY));
  TRY(open("", O_RDONLY));
  TRY(open("none/below", O_RDWR | O_CREAT, 0644));
  TRY(open("given/below", O_RDONLY));
  TRY(open("given/", O_RDONLY));
  TRY(open("none/", O_RDWR | O_CREAT, 0644));
  TRY(open(".", O_RDWR));
  TRY(open("given", O_DIRECTORY));
  TRY(open("given", O_RDWR | O_CREAT | O_EXCL, 0644));
  memset(buffer, 'n', sizeof buffer);
  buffer[300] = 0;
  TRY(open(buffer + 30, O_RDONLY));
  TRY(open(buffer, O_RDONLY));
  memset(buffer, 'n', sizeof buffer);
  buffer[4999] = 0;
  TRY(open(buffer, O_RDONLY));

  int fd = open("new", O_RDWR | O_CREAT | O_EXCL, 0666);
  TRY(fd);
  TRY(write(fd, "0123456789", 10));
  TRY(lseek(fd, 0, SEEK_CUR));
  TRY(lseek(fd, -3, SEEK_END));
  TRY(read(fd, buffer, sizeof buffer));
  printf("%.3s\n", buffer);
  TRY(read(fd, buffer, sizeof buffer));
  TRY(lseek(fd, -1, SEEK_SET));
  TRY(lseek(fd, -11, SEEK_CUR));
  TRY(lseek(fd, 0, 99));
  TRY(pread(fd, buffer, 4, 2));
  printf("%.4s\n", buffer);
  TRY(pread(fd, buffer, 4, 100));
  TRY(pread(fd, buffer, 4, -1));
  TRY(pwrite(fd, "ab", 2, 15)); // a hole of five bytes
  TRY(pread(fd, buffer, 20, 0));
  for (int k = 0; k < 17; k++) printf(" %d", buffer[k]);
  puts("");
  TRY(lseek(fd, 0, SEEK_CUR));
  TRY(ftruncate(fd, 12));
  TRY(ftruncate(fd, -1));
  show("new");
  TRY(ftruncate(fd, 14));
  TRY(pread(fd, buffer, 20, 10));
  for (int k = 0; k < 4; k++) printf(" %d", buffer[k]);
  puts("");
  TRY(truncate("new", 3));
  TRY(truncate("none", 3));
  TRY(truncate(".", 3));
  TRY(fstat(fd, &s));
  printf("%o %ld %d %d\n", (unsigned)s.st_mode, (long)s.st_size, (int)s.st_nlink, s.st_ino != 0);
  TRY(fchmod(fd, 0600));
  show("new");
  TRY(chmod("new", 0640));
  TRY(chmod("none", 0640));
  show("new");
  TRY(fsync(fd));
  TRY(fdatasync(fd));
  TRY(flock(fd, LOCK_EX));
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
  TRY(fcntl(fd, F_SETLK, &lock));
  TRY(fcntl(fd, F_GETLK, &lock));
  printf("%d\n", lock.l_type == F_UNLCK);
  TRY(fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND));
  TRY(fcntl(fd, F_SETFL, O_APPEND));
  TRY(fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND));
  TRY(lseek(fd, 0, SEEK_SET));
  TRY(write(fd, "end", 3));
  TRY(lseek(fd, 0, SEEK_CUR));

  int same = dup(fd), other = open("new", O_RDONLY);
  TRY(same);
  TRY(other);
  TRY(lseek(same, 1, SEEK_SET));
  TRY(lseek(fd, 0, SEEK_CUR));
  TRY(lseek(other, 0, SEEK_CUR));
  TRY(write(other, "x", 1));
  TRY(fcntl(fd, F_DUPFD, 20));
  TRY(close(fd));
  TRY(close(fd));
  TRY(read(fd, buffer, 1));
  TRY(read(same, buffer, 1));
  printf("%c\n", buffer[0]);
  TRY(unlink("new"));
  TRY(unlink("new"));
  TRY(fstat(other, &s));
  printf("%ld %d\n", (long)s.st_size, (int)s.st_nlink);
  TRY(read(other, buffer, 100));
  TRY(open("next", O_WRONLY | O_CREAT, 0600)); // the lowest that is free
  TRY(read(fd, buffer, 1));
  TRY(dprintf(fd, "%d bottles\n", 99));
  TRY(dprintf(other, "no\n"));
  TRY(lseek(1, 0, SEEK_CUR));
  TRY(lseek(77, 0, SEEK_CUR));
  TRY(fstat(77, &s));
  TRY(close(77));
  show("next");

  TRY(mkdir("dir", 0777));
  TRY(mkdir("dir", 0777));
  TRY(mkdir("next/", 0777));
  TRY(mkdir("none/dir", 0777));
  TRY(mkdir("dir/deep/", 0700));
  show("dir");
  show("dir/deep/../../dir/./deep");
  show("next/");
  TRY(rmdir("dir"));
  TRY(rmdir("next"));
  TRY(unlink("dir") != 0);
  TRY(rename("next", "dir/deep/moved"));
  TRY(rename("next", "again"));
  TRY(rename("dir", "dir/deep/itself"));
  TRY(rename("dir", "given"));
  TRY(rename("given", "dir"));
  TRY(rename("dir", "moved"));
  show("moved/deep/moved");
  show("dir");
  TRY(chdir("moved/deep"));
  show("moved");
  show("../../given");
  char *here = getcwd(NULL, 0);
  printf("%s\n", here ? strrchr(here, '/') : "none");
  TRY(getcwd(buffer, 2) != NULL);
  TRY(chdir("moved"));
  TRY(chdir("../.."));
  TRY(access("given", F_OK));
  TRY(access("given", R_OK | W_OK));
  TRY(access("given", X_OK));
  TRY(access("moved", X_OK));
  TRY(access("given/none", F_OK));
  TRY(readlink("given", buffer, 9));
  TRY(readlink("none", buffer, 9));
  TRY(chown("given", -1, -1));
  strcpy(buffer, "temp-XXXXXX");
  TRY(mkstemp(buffer) > 2);
  printf("%.5s %d\n", buffer, strcmp(buffer, "temp-XXXXXX") != 0);
  TRY(rename(buffer, "temp"));
  show("temp");
  TRY(remove("temp"));
  strcpy(buffer, "temp-XXXXX");
  TRY(mkstemp(buffer));
  fd = open("/dev/null", O_RDWR | O_TRUNC);
  TRY(write(fd, "gone", 4));
  TRY(read(fd, buffer, 4));
  fd = open("given", O_WRONLY | O_TRUNC);
  TRY(write(fd, "written\n", 8));
  fd = open("given", O_WRONLY | O_APPEND);
  TRY(write(fd, "more\n", 5));
  TRY(pwrite(fd, "x", 1, 0));
  show("given");
  return 0;
}
