// Prints, allocates and calls back, for clang-repl and lli: each function calls native code after its stackmap. A stackmap lists all live values, at
// -O1.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

// id and nops are constants; noexcept, because LLVM does not permit an invoke of it, which objects with destructors would require
extern "C" void stackmap(long id, int nops, ...) noexcept __asm("llvm.experimental.stackmap");

extern "C" {

long total = 0;

__attribute__((noinline)) long printing(long n) {
  long acc = n * 3;
  stackmap(1, 0, n, acc);
  acc += printf("%ld %ld %g\n", n, acc, n * 0.5);
  acc += puts("a line");
  acc += fprintf(stdout, "%s %c %d\n", "text", (char)('a' + n % 26), (int)n);
  total += acc;
  return acc;
}

__attribute__((noinline)) long allocating(long n) {
  long acc = 0;
  stackmap(2, 0, n, acc);
  long *p = (long *)malloc(8 * (n + 4));
  for (long i = 0; i < n + 4; i++) p[i] = i * n;
  long *q = new long[n + 2];
  std::memcpy(q, p, 8 * (n + 2));
  for (long i = 0; i < n + 2; i++) acc += q[i];
  p = (long *)realloc(p, 8 * (n + 400));
  acc += p[n + 1];
  delete[] q;
  free(p);
  return acc;
}

static int by_last_digit(const void *a, const void *b) {
  long x = *(const long *)a % 10, y = *(const long *)b % 10;
  stackmap(3, 0, x, y);
  return x < y ? -1 : x > y;
}

__attribute__((noinline)) long sorting(long n) {
  long v[16];
  for (long i = 0; i < 16; i++) v[i] = (i * 7 + n * 13) % 160 / 16 * 10 + (i * 3 + n) % 10;
  stackmap(4, 0, n, &v[0]);
  qsort(v, 9, sizeof v[0], by_last_digit);
  total += v[0];
  return v[0] * 100 + v[8];
}

long add(long a, long b) { return a + b; }
long subtract(long a, long b) { return a - b; }
long say(long a, long b) { return a + printf("say %ld\n", b); }
long (*volatile operations[])(long, long) = {add, subtract, say};

__attribute__((noinline)) long back(long n) {
  long acc = 1;
  for (long i = 0; i < 3; i++) {
    stackmap(5, 0, i, acc, n);
    acc = operations[(i + n) % 3](acc, n);
  }
  return acc;
}

struct Pair {
  long a, b;
};
struct Big {
  long a, b, c;
};
__attribute__((noinline)) Pair pair(long n) { return {n + printf("pair\n"), total++}; }
__attribute__((noinline)) long take(Pair p, const Big *b, double d) { return p.a + b->c + (long)d; }
Pair (*volatile pairing)(long) = pair;
long (*volatile taking)(Pair, const Big *, double) = take;

__attribute__((noinline)) long structures(long n) {
  Big b = {n, 0, 0};
  stackmap(6, 0, n, &b, &b.b, &b.c);
  Pair p = pairing(n);
  ldiv_t d = ldiv(p.a * 10 + n, n + 3);
  b.b = p.b, b.c = d.quot;
  return taking(p, &b, n * 0.25) + d.rem;
}

}

struct Shape {
  virtual double area() const = 0;
  virtual ~Shape() = default;
};
struct Square : Shape {
  double side;
  explicit Square(double s) : side(s) {}
  double area() const override { return side * side; }
};
struct Disc : Shape {
  double r;
  explicit Disc(double r) : r(r) {}
  double area() const override {
    stackmap(7, 0, this, &r);
    return printf("disc\n") + r * r * 3;
  }
};

extern "C" {

__attribute__((noinline)) long objects(long n) {
  std::unique_ptr<Shape> s;
  if (n % 2)
    s = std::make_unique<Square>(n);
  else
    s = std::make_unique<Disc>(n * 0.5);
  stackmap(8, 0, n, s.get());
  return (long)(s->area() * 4);
}

__attribute__((noinline)) static long strings(long n) {
  std::vector<std::string> v;
  for (long i = 0; i < 4; i++) v.push_back("the text number " + std::to_string(i * n));
  std::map<std::string, long> m;
  for (auto &s : v) m[s] += (long)s.size();
  std::sort(v.begin(), v.end(), [](const std::string &a, const std::string &b) { return a > b; });
  return printf("%s\n", v[0].c_str()) + m.begin()->second;
}

__attribute__((noinline)) long containers(long n) {
  stackmap(9, 0, n);
  return strings(n) + n;
}

long program(long n) {
  long acc = 0;
  for (long i = 0; i < n; i++) acc += printing(i) + allocating(i) + sorting(i) + back(i) + structures(i) + objects(i) + containers(i);
  printf("%ld\n", acc);
  return acc;
}

}
#ifdef MAIN
int main() { return program(4) == 0; }
#endif
