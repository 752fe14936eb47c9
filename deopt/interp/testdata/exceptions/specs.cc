// Dynamic exception specifications of C++14 and earlier, cleanups of C, and setjmp together with exceptions.
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>

struct Note {
  const char *name;
  ~Note() { std::printf("-%s%s ", name, std::uncaught_exception() ? "!" : ""); }
};
struct Base {};
struct Derived : Base {};

[[gnu::noinline]] static void raised(int kind) {
  Note n{"raised"};
  switch (kind) {
  case 0: throw 1;
  case 1: throw Derived();
  case 2: throw 2.5;
  case 3: throw "text";
  case 4: throw std::runtime_error("boom");
  }
}
[[gnu::noinline]] static void some(int kind) throw(int, Base, std::exception) {
  Note n{"some"};
  raised(kind);
}
static void none(int kind) throw() {
  Note n{"none"};
  raised(kind);
}

static std::jmp_buf buf;
static void jumps(int kind) {
  try {
    raised(kind);
  } catch (int x) {
    std::printf("jump ");
    std::longjmp(buf, x + 1);
  }
}

int main(int, char **argv) {
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  int kind = std::atoi(argv[1]);
  Note n{"main"};
  if (int got = setjmp(buf)) {
    std::printf("back %d\n", got);
    return got;
  }
  try {
    if (kind == 5)
      none(0);
    if (kind == 6)
      jumps(0);
    some(kind);
  } catch (int x) {
    std::printf("int %d\n", x);
  } catch (Base &) {
    std::printf("base\n");
  } catch (std::exception &e) {
    std::printf("%s\n", e.what());
  }
}
