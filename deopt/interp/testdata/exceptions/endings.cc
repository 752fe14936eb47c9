// Programs that end with an unhandled exception; the argument selects the case.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>

struct Note {
  const char *name;
  ~Note() { std::printf("-%s ", name); }
};
namespace outer { template <class T> struct Own { T t; }; }
struct Said : std::exception { const char *what() const noexcept override { return "said"; } };
struct Loud : std::exception { const char *what() const noexcept override { throw 1; } };
struct Evil { ~Evil() noexcept(false) { throw 2; } };
struct Both : Said, std::bad_alloc { };

[[gnu::noinline]] static void raised(int kind) {
  Note n{"raised"};
  switch (kind) {
  case 0: throw 1;
  case 1: throw std::runtime_error("the message");
  case 2: throw "text";
  case 3: throw outer::Own<const char *>{nullptr};
  case 4: throw Said();
  case 5: throw Both();
  case 6: std::terminate();
  case 7: std::abort();
  case 8: std::exit(3);
  default: throw kind;
  }
}
static void quiet(int kind) noexcept {
  Note n{"quiet"};
  raised(kind);
}
static void handler() {
  std::printf("handler %d\n", std::current_exception() != nullptr);
  std::exit(7);
}
static void returns() { std::puts("returns"); }
static void throws() { throw 5; }
static void asks() {
  try {
    std::rethrow_exception(std::current_exception());
  } catch (const std::exception &e) {
    std::printf("asks %s\n", e.what());
  }
  std::_Exit(8);
}

struct Early { Early(int k) { if (k == 17) throw 17; } };

int main(int, char **argv) {
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  int kind = std::atoi(argv[1]);
  Note n{"main"};
  try {
    Note inner{"inner"};
    switch (kind) {
    case 9: quiet(0);
    case 10: std::set_terminate(handler); quiet(1);
    case 11: std::set_terminate(returns); raised(0);
    case 12: std::set_terminate(throws); raised(0);
    case 13: std::set_terminate(asks); raised(1);
    case 14: { Evil e; throw 1; }
    case 15: throw;
    case 16: try { throw 1; } catch (int) { raised(1); }
    case 17: { static Early e(kind); }
    case 18: std::atexit([] { throw 4; }); std::exit(0);
    case 19: try { raised(0); } catch (short) { } catch (const char *) { }
    case 20: try { throw std::length_error("again"); } catch (...) { throw; }
    case 21: std::rethrow_exception(std::make_exception_ptr(std::logic_error("made")));
    case 22: throw new int(1);
    case 23: try { throw Said(); } catch (std::exception e) { throw e; }
    default: raised(kind);
    }
  } catch (short) {
    std::printf("never");
  }
  return 1;
}
