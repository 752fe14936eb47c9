// Objects with constructors and destructors, on the heap, static and global.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <new>
#include <vector>

struct Named {
  const char *name;
  explicit Named(const char *n) : name(n) { std::printf("+%s\n", name); }
  ~Named() { std::printf("-%s\n", name); }
};

static Named global("global");
static std::vector<int> numbers = {5, 3, 9, -1};

struct Shape {
  virtual int area() const = 0;
  virtual ~Shape() { std::puts("-shape"); }
};

struct Square : Shape {
  int side;
  explicit Square(int s) : side(s) {}
  int area() const override { return side * side; }
};

struct alignas(64) Wide {
  char bytes[64];
};

static Named &once() {
  static Named n("once");
  return n;
}

int main() {
  std::sort(numbers.begin(), numbers.end());
  for (int n : numbers) std::printf("%d ", n);
  std::puts(once().name);
  once();
  std::vector<std::unique_ptr<Shape>> shapes;
  for (int k = 1; k < 4; k++) shapes.emplace_back(new Square(k));
  int sum = 0;
  for (auto &s : shapes) sum += s->area();
  std::unique_ptr<Wide> wide(new Wide());
  std::unique_ptr<Named[]> none;
  std::unique_ptr<int> maybe(new (std::nothrow) int(4));
  auto shared = std::make_shared<Named>("shared");
  auto other = shared;
  std::printf("%ld\n", shared.use_count());
  std::printf("%d %d %d\n", sum, int(reinterpret_cast<unsigned long>(wide.get()) % 64), *maybe);
  return sum;
}
