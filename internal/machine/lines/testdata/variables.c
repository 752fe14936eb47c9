// A loop whose variables are found in a stack map, once the call of pause has become a patchpoint that records them.
#include <unistd.h>

static int sum2(int a, int b) {
  int both = a + b;
  return both * 3;
}

long work(long n, long *p) {
  long acc = 0, other = 7;
  write(1, "ready\n", 6);
  for (long idx = 1; idx < n; idx++) {
    long sq = idx * idx;
    acc += sq;
    if (acc == 5)
      other = acc;
    p[idx] = sum2(acc, sq);
    pause();
  }
  return acc + other;
}
