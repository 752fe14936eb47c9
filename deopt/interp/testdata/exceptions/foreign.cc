// Foreign exceptions, thrown as another language does.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <unwind.h>

struct Own {
  _Unwind_Exception head;
  int value;
};
struct Note {
  const char *name;
  ~Note() { std::printf("-%s%d ", name, std::uncaught_exceptions()); }
};

static void gone(_Unwind_Reason_Code why, _Unwind_Exception *e) {
  std::printf("gone %d %d ", why, reinterpret_cast<Own *>(e)->value);
  std::free(e);
}

[[gnu::noinline]] static void raised(int value, bool cleanup) {
  Note n{"raised"};
  Own *e = static_cast<Own *>(std::calloc(1, sizeof(Own)));
  std::memcpy(&e->head.exception_class, "MINEOWN", 8);
  e->head.exception_cleanup = cleanup ? gone : nullptr;
  e->value = value;
  int why = _Unwind_RaiseException(&e->head);
  std::printf("nobody: %d\n", why);
  std::exit(4);
}

[[gnu::noinline]] static int caught(int value, bool cleanup) {
  Note n{"caught"};
  try {
    raised(value, cleanup);
  } catch (int) {
    return 1;
  } catch (...) {
    std::printf("caught %d ", std::current_exception() == nullptr);
    return 2;
  }
  return 3;
}

static int again(int value) {
  try {
    try {
      raised(value, true);
    } catch (...) {
      Note n{"again"};
      throw;
    }
  } catch (...) {
    return value;
  }
  return 0;
}

static void quiet(int value) noexcept {
  try {
    raised(value, true);
  } catch (...) {
    std::printf("quiet ");
    std::_Exit(5);
  }
}

int main(int, char **argv) {
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  std::printf("%d\n", caught(1, true));
  std::printf("%d\n", caught(2, false));
  std::printf("%d\n", again(3));
  switch (std::atoi(argv[1])) {
  case 0: raised(5, true); // no handler, so no cleanup runs
  case 1: quiet(0);
  case 2:
    try {
      raised(7, true);
    } catch (...) {
      throw 8; // a second exception
    }
  case 3:
    try {
      throw 9;
    } catch (...) {
      try {
        raised(10, true);
      } catch (...) { // cannot catch two foreign exceptions at once
      }
    }
  }
}
