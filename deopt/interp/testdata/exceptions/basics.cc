// Exceptions that are thrown, caught and not caught, and the order of destruction.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>
#include <typeinfo>
#include <vector>

struct Note {
  const char *name;
  int id;
  Note(const char *n, int i = 0) : name(n), id(i) { std::printf("+%s%d ", name, id); }
  Note(const Note &o) : name(o.name), id(o.id + 100) { std::printf("*%s%d ", name, id); }
  ~Note() { std::printf("-%s%d%s ", name, id, std::uncaught_exceptions() ? "!" : ""); }
};

struct A { int a = 1; virtual ~A() {} };
struct B : A { int b = 2; };
struct C : virtual A { int c = 3; };
struct D : virtual A { int d = 4; };
struct E : C, D { int e = 5; };      // one A subobject
struct F : B { int f = 6; };
struct G : B, C { int g = 7; };      // two A subobjects
struct H : private A { int h = 8; };
struct I : H, B { int i = 9; };
struct Big { long data[40]; Big() { for (int k = 0; k < 40; k++) data[k] = k * k; } };
enum Colour { red, green };
enum class Shade : short { dark = 5 };

template <class T> [[gnu::noinline]] void out(T t) { throw t; }

static void caught(int kind) {
  static int number = 42;
  static E e;
  static const int fixed = 7;
  Note outer("caught", kind);
  switch (kind) {
  case 0: out(1);
  case 1: out(2u);
  case 2: out('c');
  case 3: out(4.5);
  case 4: out(5.5f);
  case 5: out(6L);
  case 6: out("text");
  case 7: out((char *)"chars");
  case 8: out(&number);
  case 9: out((const int *)&fixed);
  case 10: out(nullptr);
  case 11: out(red);
  case 12: out(Shade::dark);
  case 13: out(B());
  case 14: out(E());
  case 15: out(F());
  case 16: out(G());
  case 17: out(H());
  case 18: out(I());
  case 19: out((A *)&e);
  case 20: out(&e);
  case 21: out((void *)&number);
  case 22: out(&caught);
  case 23: out(Big());
  case 24: out(&A::a);
  case 25: out((int **)nullptr);
  case 26: out(true);
  case 27: out(std::runtime_error("runtime"));
  case 28: out(std::out_of_range("range"));
  case 29: out((volatile int *)&number);
  case 30: out((const E *)&e);
  case 31: out(6.5L);
  case 32: out(7ull);
  case 33: out(L'w');
  default: out(kind);
  }
}

static void narrow(int kind) {
  try {
    caught(kind);
  } catch (const A &a) {
    std::printf("A %d", a.a);
  } catch (C &c) {
    std::printf("C %d", c.c);
  } catch (int i) {
    std::printf("int %d", i);
  } catch (unsigned u) {
    std::printf("unsigned %u", u);
  } catch (const char *s) {
    std::printf("text %s", s);
  } catch (const std::logic_error &x) {
    std::printf("logic %s", x.what());
  } catch (Colour c) {
    std::printf("colour %d", c);
  } catch (const Big &b) {
    std::printf("big %ld", b.data[39]);
  } catch (const int *p) {
    std::printf("const int * %d", p ? *p : -1);
  } catch (A *p) {
    std::printf("A * %d", p ? p->a : -1);
  } catch (const D *p) {
    std::printf("const D * %d", p->d);
  } catch (void *) {
    std::printf("void *");
  } catch (int A::*m) {
    std::printf("member %d", m != nullptr);
  } catch (void (*f)(int)) {
    std::printf("function %d", f == narrow || f == caught);
  } catch (double d) {
    std::printf("double %g", d);
  } catch (Shade s) {
    std::printf("shade %d", (int)s);
  } catch (long double d) {
    std::printf("long double %Lg", d);
  } catch (...) {
    std::printf("something");
  }
  std::printf("\n");
}

// Unwinding past handlers of other types, in many frames, each with an object to destroy.
[[gnu::noinline]] static int pass(int depth, int kind) {
  Note n("pass", depth);
  try {
    if (depth == 0)
      caught(kind);
    return pass(depth - 1, kind) + 1;
  } catch (const Note &) {
    std::printf("never");
  } catch (short) {
    std::printf("never");
  }
  return depth;
}

struct Part {
  Note n;
  Part(int k) : n("part", k) {
    if (k == 3)
      throw k;
  }
};
struct Whole {
  Part a, b;
  Note middle;
  Part list[3];
  Whole(int k) try : a(k), b(k + 1), middle("middle"), list{k + 2, k + 3, k + 4} {
    std::printf("made ");
  } catch (int x) {
    std::printf("not made %d ", x);
  }
};

static void constructors() {
  for (int k = -2; k < 5; k++) {
    try {
      Whole w(k);
      std::printf("used ");
    } catch (int x) {
      std::printf("again %d", x);
    }
    std::printf("\n");
  }
  try {
    Part *p = new Part[5]{0, 1, 2, 3, 4};
    std::printf("never %p", (void *)p);
  } catch (int x) {
    std::printf("array %d\n", x);
  }
}

static void rethrown() {
  for (int k = 0; k < 4; k++) {
    try {
      Note first("first", k);
      try {
        Note second("second", k);
        if (k == 3)
          throw std::length_error("three");
        throw k;
      } catch (int &x) {
        Note handler("handler", x);
        x += 10;
        if (x == 11)
          throw;
        if (x == 12)
          throw "other";
      } catch (...) {
        try {
          throw;
        } catch (std::exception &e) {
          std::printf("[%s %s] ", e.what(), typeid(e).name());
          throw;
        }
      }
      std::printf("handled ");
    } catch (int x) {
      std::printf("int %d", x);
    } catch (const char *s) {
      std::printf("text %s", s);
    } catch (const std::logic_error &e) {
      std::printf("logic %s", e.what());
    }
    std::printf("\n");
  }
}

struct Thrower {
  int id;
  Thrower(int i) : id(i) {}
  ~Thrower() noexcept(false) {
    std::printf("~Thrower%d(%d) ", id, std::uncaught_exceptions());
    if (!std::uncaught_exceptions())
      throw id;
  }
};

static void destructors() {
  try {
    Note n("before");
    Thrower t(1);
    Note m("after");
  } catch (int x) {
    std::printf("destructor %d\n", x);
  }
  try {
    Thrower t(2);
    throw 3;
  } catch (int x) {
    std::printf("thrown %d\n", x);
  }
  // An exception in a destructor that runs because of another exception.
  struct Busy {
    ~Busy() {
      try {
        throw "inside";
      } catch (const char *s) {
        std::printf("%s %d ", s, std::uncaught_exceptions());
      }
    }
  };
  try {
    Busy b;
    Note n("with");
    throw 4;
  } catch (int x) {
    std::printf("outside %d\n", x);
  }
}

// Exceptions thrown out of a callback of the library.
static int compare(const void *a, const void *b) {
  Note n("compare");
  if (*(const int *)a == 3 || *(const int *)b == 3)
    throw 3;
  return *(const int *)a - *(const int *)b;
}
static void library() {
  int list[] = {1, 3};
  try {
    std::qsort(list, 2, sizeof *list, compare);
  } catch (int x) {
    std::printf("left qsort %d\n", x);
  }
}

static void standard() {
  std::vector<int> v{1, 2, 3};
  try {
    std::printf("%d\n", v.at(7));
  } catch (const std::out_of_range &e) {
    std::printf("at: %s\n", e.what());
  }
  try {
    v.reserve(v.max_size() + 1);
  } catch (const std::exception &e) {
    std::printf("reserve: %s %s\n", typeid(e).name(), e.what());
  }
  try {
    volatile long n = -1;
    int *p = new int[n];
    std::printf("never %p\n", (void *)p);
  } catch (const std::bad_alloc &e) {
    std::printf("new: %s\n", e.what());
  }
  try {
    volatile std::size_t n = std::size_t(-1) / 4;
    std::printf("nothrow %d\n", operator new(n, std::nothrow) == nullptr);
    void *p = operator new(n);
    std::printf("never %p\n", p);
  } catch (const std::bad_alloc &e) {
    std::printf("new: %s\n", e.what());
  }
  try {
    A *volatile a = new A;
    std::printf("cast %d\n", dynamic_cast<B *>(a) == nullptr);
    dynamic_cast<B &>(*a);
  } catch (const std::bad_cast &e) {
    std::printf("cast: %s\n", e.what());
  }
  try {
    A *volatile a = nullptr;
    std::printf("%s\n", typeid(*a).name());
  } catch (const std::bad_typeid &e) {
    std::printf("typeid: %s\n", e.what());
  }
}

static void casts() {
  E e;
  F f;
  G g;
  I i;
  A *list[] = {&e, &f, static_cast<B *>(&g), static_cast<C *>(&g), static_cast<B *>(&i)};
  for (A *p : list) {
    std::printf("%d%d%d%d%d%d%d ", dynamic_cast<B *>(p) != nullptr, dynamic_cast<C *>(p) != nullptr, dynamic_cast<D *>(p) != nullptr,
                dynamic_cast<E *>(p) != nullptr, dynamic_cast<F *>(p) != nullptr, dynamic_cast<G *>(p) != nullptr, dynamic_cast<I *>(p) != nullptr);
    std::printf("%s %d\n", typeid(*p).name(), p == dynamic_cast<void *>(p));
  }
  std::printf("%d %d\n", dynamic_cast<D *>(static_cast<C *>(&e)) == &e, dynamic_cast<C *>(static_cast<B *>(&g)) == &g);
}

int main() {
  for (int k = 0; k <= 34; k++)
    narrow(k);
  for (int k : {0, 6, 13, 16, 27}) {
    try {
      std::printf("%d\n", pass(4, k));
    } catch (...) {
      std::printf("passed\n");
    }
  }
  constructors();
  rethrown();
  destructors();
  library();
  standard();
  casts();
  std::printf("%d\n", std::uncaught_exceptions());
}
