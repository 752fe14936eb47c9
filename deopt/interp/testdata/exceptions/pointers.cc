// exception_ptr, nested exceptions, exception specifications and what programs build on them.
#include <any>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <typeinfo>
#include <variant>

struct Mine : std::exception {
  int id;
  Mine(int i) : id(i) { std::printf("+mine%d ", id); }
  Mine(const Mine &o) : std::exception(o), id(o.id) { std::printf("*mine%d ", id); }
  ~Mine() override { std::printf("-mine%d ", id); }
  const char *what() const noexcept override { return "mine"; }
};

static void show(std::exception_ptr p) {
  if (!p) {
    std::printf("nothing ");
    return;
  }
  try {
    std::rethrow_exception(p);
  } catch (const Mine &m) {
    std::printf("mine %d ", m.id);
  } catch (const std::exception &e) {
    std::printf("%s ", e.what());
  } catch (int x) {
    std::printf("int %d ", x);
  }
}

static std::exception_ptr keep(int kind) {
  try {
    switch (kind) {
    case 0: throw Mine(1);
    case 1: throw std::runtime_error("kept");
    case 2: throw 3;
    default: return nullptr;
    }
  } catch (...) {
    return std::current_exception();
  }
}

static void pointers() {
  std::exception_ptr last;
  for (int k = 0; k < 4; k++) {
    std::exception_ptr p = keep(k), q = p;
    std::printf("%d%d ", p == q, p == last);
    show(p);
    show(q);
    last = std::move(q);
    std::printf("%d\n", q == nullptr);
  }
  last = std::make_exception_ptr(Mine(7));
  show(last);
  show(std::make_exception_ptr(8));
  std::printf("\n");
  // The same object in two handlers.
  try {
    std::rethrow_exception(last);
  } catch (Mine &a) {
    a.id = 9;
    try {
      std::rethrow_exception(std::current_exception());
    } catch (Mine &b) {
      std::printf("same %d %d ", &a == &b, b.id);
      std::swap(last, last);
    }
  }
  last = nullptr;
  std::printf("\n%d\n", std::current_exception() == nullptr);
}

static void chain(const std::exception &e, int depth = 0) {
  std::printf("%d:%s ", depth, e.what());
  try {
    std::rethrow_if_nested(e);
  } catch (const std::exception &inner) {
    chain(inner, depth + 1);
  } catch (int x) {
    std::printf("int %d ", x);
  }
}

static void dig(int depth) {
  try {
    if (depth == 0)
      throw 5;
    dig(depth - 1);
  } catch (...) {
    if (depth % 2)
      std::throw_with_nested(std::runtime_error("odd"));
    std::throw_with_nested(Mine(depth));
  }
}

static void nested() {
  try {
    dig(3);
  } catch (const std::exception &e) {
    chain(e);
  }
  std::printf("\n");
}

// C++17 has noexcept, but no dynamic exception specifications.
static int quiet(int x) noexcept {
  try {
    if (x)
      throw x;
    return 0;
  } catch (int y) {
    return -y;
  }
}

struct Base { virtual ~Base() = default; virtual int f() { throw std::logic_error("pure"); } };
struct Derived : Base { int f() override { return Base::f() + 1; } };

static void library() {
  try {
    std::function<int(int)> f;
    std::printf("%d", f(1));
  } catch (const std::bad_function_call &e) {
    std::printf("%s\n", e.what());
  }
  try {
    std::optional<int> o;
    std::printf("%d", o.value());
  } catch (const std::bad_optional_access &e) {
    std::printf("%s\n", e.what());
  }
  try {
    std::variant<int, double> v = 1.5;
    std::printf("%d", std::get<int>(v));
  } catch (const std::bad_variant_access &e) {
    std::printf("%s\n", e.what());
  }
  try {
    std::any a = 1;
    std::printf("%g", std::any_cast<double>(a));
  } catch (const std::bad_cast &e) {
    std::printf("%s %s\n", e.what(), typeid(e).name());
  }
  try {
    std::unique_ptr<Base> b(new Derived);
    std::printf("%d", b->f());
  } catch (const std::logic_error &e) {
    std::logic_error copy(e), other("other");
    other = copy;
    std::printf("%s %s %s\n", e.what(), copy.what(), other.what());
  }
  std::unique_ptr<std::exception> list[] = {
      std::make_unique<std::domain_error>("domain"),     std::make_unique<std::invalid_argument>("argument"), std::make_unique<std::range_error>("range"),
      std::make_unique<std::overflow_error>("overflow"), std::make_unique<std::underflow_error>("underflow"), std::make_unique<std::bad_exception>(),
      std::make_unique<std::bad_array_new_length>(),     std::make_unique<std::exception>()};
  for (auto &e : list)
    std::printf("%s %s %d\n", typeid(*e).name(), e->what(), dynamic_cast<std::runtime_error *>(e.get()) != nullptr);
}

// A handler that leaves by goto, return, break and continue.
static int leaves(int k) {
  for (int n = 0; n < 3; n++) {
    try {
      throw Mine(n * 10 + k);
    } catch (const Mine &m) {
      if (k == 0)
        continue;
      if (k == 1)
        break;
      if (k == 2)
        return m.id;
      goto end;
    }
  }
  return -1;
end:
  return -2;
}

int main() {
  pointers();
  nested();
  std::printf("%d %d\n", quiet(0), quiet(6));
  library();
  for (int k = 0; k < 4; k++)
    std::printf("%d\n", leaves(k));
}
