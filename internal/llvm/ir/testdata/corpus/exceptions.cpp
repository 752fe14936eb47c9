// What C++ adds: exceptions, virtual bases, thread-local and guarded variables, lambdas.
struct Base { virtual ~Base(); virtual int f(int) = 0; };
struct Derived : virtual Base { int f(int x) override { if (x > 3) throw x; return x; } };
struct Array : Derived { int elems[4]; int f(int x) override { return elems[x & 3]; } };
Base::~Base() {}
struct Counted { static int count; Counted(); ~Counted(); Counted(const Counted &); int v; };
thread_local Counted of_thread;
inline Counted &guarded() { static Counted c; return c; }
template <class T> struct Vector { T *begin_, *end_; T *begin() { return begin_; } T *end() { return end_; } };
template <class T> T sum(Vector<T> &v) { T s{}; for (T &x : v) s += x; return s; }
template long sum(Vector<long> &);
typedef int v4 __attribute__((vector_size(16)));
v4 vectors(v4 a, v4 b) { return a * b + (a < b) + __builtin_shufflevector(a, b, 0, 5, 2, 7); }
Counted by_value(Counted c) { c.v++; return c; }
int catches(int n) {
  Counted before;
  try { Derived d; Counted inner; return d.f(n); }
  catch (int e) { return -e; }
  catch (Counted &c) { return c.v; }
  catch (...) { throw; }
}
int promises(int n) noexcept { Array a; auto f = [&](int k) { return a.f(k) + n; }; return f(3) + guarded().v + of_thread.v; }
void filters() throw() { catches(1); }
int members(Base *b, int (Base::*p)(int)) { return (b->*p)(1) + (dynamic_cast<Derived *>(b) != nullptr); }
Base *make(int n) { return n ? static_cast<Base *>(new Derived) : new Array[n]; }
