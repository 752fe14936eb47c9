// Inline assembly without text, which hides a value from the compiler.
#include <stdio.h>

static int hidden(int x) {
  __asm__("" : "+r"(x));
  return x;
}

int main(void) {
  int a = 1, b = 2, memory = 3;
  long wide = 1L << (8 * sizeof(long) - 24);
  double d = 2.5;
  int *p = &memory;
  __asm__ volatile("" ::: "memory");
  __asm__ volatile("" : "+r"(a), "+r"(wide), "+r"(b) : "r"(d), "r"(p) : "memory", "cc");
  __asm__ volatile("" : "+m"(memory));
  __asm__ volatile("" : "+x"(d));
  __asm__ volatile("" : "=&r"(p), "+r"(b) : "0"(p));
  printf("%d %d %d %ld %g %d\n", a, b, memory, wide, d, *p);
  for (int i = 0; i < hidden(3); i++)
    printf("%d ", hidden(i) + hidden(a));
  return hidden(7);
}
