// caught: exceptions that native code throws and that code with sites catches, and what C++ does of exceptions and types without one.
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

struct Shape {
  virtual ~Shape() {}
};
struct Round : Shape {
  int radius = 3;
};

__attribute__((noinline)) static int round(Shape *s) {
  auto *r = dynamic_cast<Round *>(s);
  return r ? r->radius : -1;
}

__attribute__((noinline)) static int number(const char *text) {
  try {
    return std::stoi(text);
  } catch (const std::invalid_argument &e) {
    return printf("%s\n", e.what());
  }
}

__attribute__((noinline)) static int kept() {
  std::exception_ptr e = std::make_exception_ptr(7);
  std::exception_ptr other = e;
  return (other == e) + 2 * (e == nullptr) + 4 * std::uncaught_exceptions();
}

int main() {
  Shape plain;
  Round ball;
  for (int i = 0; i < 3; i++) {
    int a = round(&plain), b = round(&ball), c = number("12"), d = number("twelve"), e = kept();
    printf("%d %d %d %d %d\n", a, b, c, d, e);
  }
}
