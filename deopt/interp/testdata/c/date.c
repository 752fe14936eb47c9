// Dates from -3000 to 5000 and at the ends of what there is, each way of writing them.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void show(const struct tm *t) {
  printf("%d-%d-%d %d:%d:%d %d %d %d %ld %s\n", t->tm_year, t->tm_mon, t->tm_mday, t->tm_hour, t->tm_min, t->tm_sec, t->tm_wday, t->tm_yday,
         t->tm_isdst, t->tm_gmtoff, t->tm_zone);
}

static const char letters[] = "aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyYzZ%";

static void each(const struct tm *t) {
  char format[40], text[200];
  static const char *const before[] = {"", "E", "O", "_", "-", "0", "^", "#", "10", "_8", "012", "-5", "^_20"};
  for (unsigned f = 0; f < sizeof before / sizeof *before; f++)
    for (const char *l = letters; *l; l++) {
      if ((*l == 'z' || *l == 'F') && before[f][0]) continue;
      sprintf(format, "%%%s%c", before[f], *l);
      size_t n = strftime(text, sizeof text, format, t);
      printf("%s|%s|%d\n", format, n ? text : "", (int)n);
    }
  printf("\n");
}

int main(void) {
  static const long seconds[] = {0,          1,          -1,         59,          86399,      86400,       951782399,  951782400,   951868800, 1000000000,
                                 1078012800, 1709164800, 2147483647, -2147483647, 1104537600, -62135596800 % 2147483647, 68169600, 1230768000, 1262304000};
  char text[200];
  for (unsigned k = 0; k < sizeof seconds / sizeof *seconds; k++) {
    time_t s = seconds[k];
    struct tm t, copy;
    show(gmtime(&s));
    show(localtime(&s));
    show(gmtime_r(&s, &t));
    show(localtime_r(&s, &copy));
    fputs(asctime(&t), stdout);
    fputs(asctime_r(&t, text), stdout);
    fputs(ctime(&s), stdout);
    printf("%ld %ld\n", (long)mktime(&copy), (long)timegm(&t));
    each(&t);
  }
#if __SIZEOF_LONG__ == 8
  for (long long s = -150000000000; s < 100000000000; s += 1234567891) {
    time_t v = s;
    struct tm t;
    show(gmtime_r(&v, &t));
    strftime(text, sizeof text, "%c %j %U %W %V %G %g %C %y %Y %s", &t);
    printf("%s %lld\n", text, (long long)timegm(&t));
  }
  for (int k = -2; k < 2; k++) {
    time_t low = -67768040609740800 + k, high = 67768036191676799 + k;
    struct tm *t;
    errno = 0;
    if ((t = gmtime(&low))) show(t);
    else printf("none %d\n", errno);
    errno = 0;
    if ((t = gmtime(&high))) show(t);
    else printf("none %d\n", errno);
  }
#else
  struct tm far = {.tm_year = 200};
  errno = 0;
  printf("%ld", (long)mktime(&far));
  printf(" %d\n", errno);
#endif
  static const int odd[][6] = {{0, 0, 0, 0, 0, 100}, {-1, -1, -1, -1, -1, 100}, {61, 61, 25, 32, 13, 99}, {100000, 0, 0, 1, -13, 70}, {0, 100000, 0, 1, 25, 70},
                               {0, 0, 10000, 1, 0, 70}, {0, 0, 0, 10000, 0, 100}, {0, 0, 0, -10000, 0, 100}, {0, 0, 0, 1, 500, 30}};
  for (unsigned k = 0; k < sizeof odd / sizeof *odd; k++) {
    struct tm t = {odd[k][0], odd[k][1], odd[k][2], odd[k][3], odd[k][4], odd[k][5], 0, 0, -1};
    printf("%ld ", (long)mktime(&t));
    show(&t);
  }
  struct tm wrong = {.tm_year = 8099, .tm_mon = 12, .tm_wday = -1, .tm_mday = 5};
  char *s = asctime_r(&wrong, text);
  printf("%s", s ? s : "null\n");
  strftime(text, sizeof text, "%a %A %b %B", &wrong);
  puts(text);
  printf("%d %d\n", (int)strftime(text, 5, "%Y", &wrong), (int)strftime(text, 4, "%Y", &wrong));
  strftime(text, sizeof text, "%Q %E %5 x%", &wrong);
  puts(text);
  printf("%g\n", difftime(5, 3));
  return 0;
}
