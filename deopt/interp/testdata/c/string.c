// <string.h> and <ctype.h>.
#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int sign(int n) { return (n > 0) - (n < 0); }
static long off(const char *s, const char *p) { return p ? p - s : -1; }

int main(int argc, char **argv) {
  volatile int zero = argc - 2;
  char a[64] = "alpha beta gamma", b[64];
  const char *words[] = {"", "a", "alpha", "alphabet", "Alpha", "beta", "\xff"};
  for (int i = 0; i < 7; i++)
    for (int j = 0; j < 7; j++)
      printf("%d%d%d%d%d ", sign(strcmp(words[i + zero], words[j])), sign(strncmp(words[i + zero], words[j], 5)), sign(strcasecmp(words[i + zero], words[j])),
             sign(strncasecmp(words[i + zero], words[j], 3)), sign(strcoll(words[i + zero], words[j])));
  printf("\n%zu %zu %zu\n", strlen(a + zero), strnlen(a, 3), strnlen(a, 60));
  printf("%ld %ld %ld %ld\n", off(a, strchr(a, 'b')), off(a, strchr(a, 'z')), off(a, strchr(a, 0)), off(a, strrchr(a, 'a')));
  printf("%ld %ld %ld %ld\n", off(a, strstr(a, "bet")), off(a, strstr(a, "")), off(a, strstr(a, "nope")), off(a, strcasestr(a, "GAM")));
  printf("%ld %ld %ld\n", off(a, strpbrk(a, "xyzg")), off(a, strpbrk(a, "xyz")), off(a, strchrnul(a, 'q')));
  printf("%zu %zu %zu\n", strspn(a, "ahlp"), strcspn(a, "b"), strcspn(a, ""));
  printf("%ld %ld %ld\n", off(a, memchr(a, 'e', 16)), off(a, memchr(a, 'e', 3)), off(a, memrchr(a, 'a', 12)));
  printf("%ld %ld\n", off(a, memmem(a, 16, "ma", 2)), off(a, memmem(a, 16, "xx", 2)));
  printf("%d %d %d\n", sign(memcmp("abc", "abd", 3)), memcmp("abc", "abd", 2), sign(memcmp("\xff", "\1", 1)));
  memset(b, '.', sizeof b);
  strcpy(b, "one");
  strcat(b, " two");
  strncat(b, " three and", 6);
  printf("%s %ld\n", b, (long)(stpcpy(b + 20, "end") - b));
  memset(b, '.', 10);
  strncpy(b, "ab", 5);
  printf("%d%d%d%c %ld\n", b[2], b[3], b[4], b[5], (long)(stpncpy(b, "abcdefgh", 4) - b));
  memmove(a + 2, a, 10);
  printf("%s\n", a);
  printf("%ld\n", (long)((char *)mempcpy(b, "xyz", 3) - b));
  printf("%ld %ld\n", off(b, memccpy(b, "stop here", 'p', 9)), off(b, memccpy(b, "none", 'z', 4)));
  char t[] = "  a,b;;c  ", *save, *p = t;
  for (char *k = strtok(t, " ,;"); k; k = strtok(NULL, " ,;"))
    printf("<%s>", k);
  char u[] = "x=1&y=&=z&&";
  for (char *k = strtok_r(u, "&", &save); k; k = strtok_r(NULL, "&", &save))
    printf("{%s}", k);
  char v[] = "p::q:";
  p = v;
  for (char *k; (k = strsep(&p, ":"));)
    printf("(%s)", k);
  puts("");
  char *d = strdup("copied"), *e = strndup("copied", 3);
  printf("%s %s\n", d, e);
  free(d);
  free(e);
  printf("%zu %s\n", strxfrm(b, "transform", 20), b);
  for (int c = -1; c < 256; c++)
    printf("%d%d%d%d%d%d%d%d%d%d%d%d%d.%d.%d ", !!isalpha(c), !!isdigit(c), !!isalnum(c), !!isspace(c), !!isupper(c), !!islower(c), !!ispunct(c), !!isprint(c),
           !!isgraph(c), !!iscntrl(c), !!isxdigit(c), !!isblank(c), !!isascii(c), tolower(c), toupper(c));
  puts("");
  for (int n = -1; n < 140; n++)
    printf("%s\n", strerror(n));
  return 0;
}
