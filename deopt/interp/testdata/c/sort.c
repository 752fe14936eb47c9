// qsort and bsearch with comparison functions of the program.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct record { char name[12]; int key; double weight; };

static int calls;
static int by_int(const void *a, const void *b) { calls++; int x = *(const int *)a, y = *(const int *)b; return (x > y) - (x < y); }
static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }
static int by_key(const void *a, const void *b) { return ((const struct record *)a)->key - ((const struct record *)b)->key; }
static int with(const void *a, const void *b, void *c) { return *(int *)c * (*(const char *)a - *(const char *)b); }
static int nested(const void *a, const void *b) {
  int t[3] = {3, 1, 2};
  qsort(t, 3, sizeof *t, by_int);
  return t[0] * by_int(a, b);
}
static int loud(const void *a, const void *b) {
  int n = by_int(a, b);
  fprintf(stderr, "%s", n == 99 ? "never" : "");
  return n;
}

int main(void) {
  int n[200];
  unsigned x = 1;
  for (int i = 0; i < 200; i++)
    n[i] = (x = x * 1103515245 + 12345) >> 16 & 0xff;
  qsort(n, 200, sizeof *n, loud);
  for (int i = 0; i < 200; i++)
    printf("%d ", n[i]);
  for (int k = 0; k < 256; k += 5) {
    int *p = bsearch(&k, n, 200, sizeof *n, by_int);
    printf("%ld ", p ? (long)(p - n) : -1);
  }
  const char *s[] = {"pear", "apple", "fig", "date", "apple pie", ""};
  qsort(s, 6, sizeof *s, by_text);
  for (int i = 0; i < 6; i++)
    printf("<%s>", s[i]);
  struct record r[20];
  memset(r, 0, sizeof r);
  for (int i = 0; i < 20; i++) {
    sprintf(r[i].name, "r%d", i);
    r[i].key = i * 7 % 5;
    r[i].weight = i / 2.0;
  }
  qsort(r, 20, sizeof *r, by_key);
  for (int i = 0; i < 20; i++)
    printf("%s:%d:%g ", r[i].name, r[i].key, r[i].weight);
  char t[] = "sorted the other way";
  int down = -1;
  qsort_r(t, sizeof t - 1, 1, with, &down);
  puts(t);
  int m[] = {5, 4, 3, 2, 1};
  qsort(m, 5, sizeof *m, nested);
  qsort(m, 0, sizeof *m, by_int);
  printf("%d %d %d\n", m[0], m[4], calls > 200);
  return 0;
}
