// The subject of docs/InAlloca: objects that are not trivial, passed by value, with Microsoft's C++ ABI for 32-bit x86. The caller
// constructs them in the memory of the arguments. Every constructor and destructor prints a line.
extern "C" int printf(const char *, ...);

static int alive;

struct Foo {
  int a, b;
  Foo() : Foo(0) {}
  Foo(int x) : a(x), b(2 * x) { alive++; printf("make %d\n", a); }
  Foo(const Foo &o) : a(o.a + 100), b(o.b) { alive++; printf("copy %d\n", a); }
  ~Foo() { alive--; printf("drop %d\n", a); a = -1; }
};

#define NOINLINE __attribute__((noinline))

// The example in "Intended Usage" of the document.
static int NOINLINE g(Foo a, Foo b) { printf("g %d %d\n", a.a, b.b); return a.a - b.a; }

// The example in "Nested Calls and Copy Elision".
static Foo NOINLINE bar(Foo b) { b.a++; return b; }

// Scalars are among the objects; the callee may change its arguments.
static long long NOINLINE mixed(char c, Foo a, long long n, double d, Foo b) {
  a.a += c;
  printf("mixed %c %d %lld %g %d\n", c, a.a, n, d, b.a);
  return n + a.a;
}

struct Shape {
  int base;
  virtual int area(Foo f) { return base * f.a; }                // thiscall: the callee pops its arguments
  int NOINLINE plain(Foo f, int k) { return base + f.b + k; }
  static int __attribute__((stdcall, noinline)) standard(Foo f, int k) { return f.a * k; }
  static int __attribute__((fastcall, noinline)) fast(int k, int l, Foo f) { return f.a * k + l; }
};
struct Square : Shape {
  int area(Foo f) override { return 1000 + f.a; }
};

static int NOINLINE variadic(Foo f, ...) {
  __builtin_va_list list;
  __builtin_va_start(list, f);
  int x = __builtin_va_arg(list, int);
  long long y = __builtin_va_arg(list, long long);
  double z = __builtin_va_arg(list, double);
  __builtin_va_end(list);
  printf("variadic %d %d %lld %g\n", f.a, x, y, z);
  return x;
}

static int NOINLINE deep(Foo f, int n) {
  char scratch[40];
  for (int i = 0; i < 40; i++)
    scratch[i] = (char)(n + i);
  return n == 0 ? f.a : deep(Foo(f.a + n), n - 1) + scratch[n % 40];
}

typedef int (*function)(Foo, Foo);

int main() {
  int r = g(Foo(), Foo());
  Foo x(3);
  r += g(x, x);
  r += bar(bar(Foo())).a;
  r += (int)mixed('c', x, 1LL << 40, 2.5, Foo(4));
  Shape shape, *p = &shape;
  Square square;
  shape.base = 5, square.base = 6;
  r += p->area(Foo(7));
  p = &square;
  r += p->area(x) + p->plain(x, 8) + Shape::standard(Foo(9), 2) + Shape::fast(3, 4, Foo(10));
  r += variadic(x, 11, 1LL << 35, 0.5);
  function volatile f = g;
  for (int i = 0; i < 3; i++)
    r += f(Foo(i), bar(x));
  r += deep(x, 5);
  r += x.a > 2 && g(x, Foo(x.a)) == 100 ? 1 : 2;
  printf("%d, %d alive\n", r, alive);
  return r & 0x7f;
}
