// Wide characters in memory.
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

int main(int argc, char **argv) {
  wchar_t *a = malloc(1000 * sizeof *a), *b = malloc(1000 * sizeof *b);
  size_t n = 900 + argc;
  wmemset(a, L'x', n);
  wmemset(a + 700, 0x1f600, 3);
  a[n] = 0;
  printf("%zu %x %x %x\n", wcslen(a), (unsigned)a[699], (unsigned)a[701], (unsigned)a[703]);
  wmemcpy(b, a, n + 1);
  printf("%d\n", wmemcmp(a, b, n));
  b[500] = -1;
  printf("%d %d %d\n", wmemcmp(a, b, n) > 0, wmemcmp(b, a, n) < 0, wmemcmp(a, b, argc + 300));
  wmemmove(b + 1, b, n);
  printf("%x %x %x\n", (unsigned)b[501], (unsigned)b[702], (unsigned)b[700]);
  printf("%d %d %d\n", (int)(wmemchr(b, -1, n) - b), wmemchr(b, L'y', n) == NULL, wmemchr(b, L'x', argc - 2) == NULL);
  return 0;
}
