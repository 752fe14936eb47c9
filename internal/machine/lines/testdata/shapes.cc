// C++ with templates, inlined functions of several depths, lambdas, exceptions, and a function in several pieces of code.
#include <algorithm>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace shapes {

template <typename T> static inline T square(T x) { return x * x; }

template <typename T, int N> struct Grid {
  T cells[N];
  __attribute__((always_inline)) inline T sum() const {
    T all{};
    for (int i = 0; i < N; i++)
      all += square(cells[i]);
    return all;
  }
  __attribute__((noinline)) T scaled(T by) const { return sum() * by; }
};

struct Base {
  virtual ~Base() {}
  virtual double area() const = 0;
};

struct Circle : Base {
  double r;
  explicit Circle(double r) : r(r) {}
  double area() const override { return 3.0 * square(r); }
};

__attribute__((noinline)) double check(double v) {
  if (v < 0)
    throw std::runtime_error("negative: " + std::to_string(v));
  return v;
}

} // namespace shapes

namespace {
int anonymous(std::vector<int> &v) {
  std::sort(v.begin(), v.end(), [](int a, int b) { return shapes::square(a) > shapes::square(b); });
  return v.front();
}
} // namespace

#ifndef POINT
#define POINT
#endif

int main(int argc, char **argv) {
  shapes::Grid<int, 8> g;
  shapes::Grid<double, 4> d;
  for (int i = 0; i < 8; i++)
    g.cells[i] = i * argc;
  for (int i = 0; i < 4; i++)
    d.cells[i] = i * 0.5 * argc;
  std::vector<int> v{3, -7, argc, 5};
  std::map<std::string, int> m;
  for (int i = 0; i < argc; i++)
    m[argv[i]]++;
  shapes::Circle c(argc);
  const shapes::Base *b = &c;
  try {
    printf("%g\n", shapes::check(b->area() - 1e9));
  } catch (const std::exception &e) {
    printf("%s\n", e.what());
  }
  printf("%d %g %d %zu\n", g.scaled(2), d.scaled(0.5), anonymous(v), m.size());
}
