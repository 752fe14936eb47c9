// clang-repl: typed in line by line.
extern "C" int puts(const char *);
extern "C" int fflush(void *);
static volatile long ticks = 0;
long inner(long n) { long s = 0; for (long i = 0; i < n; i++) { s += i ^ n; ticks = i; } return s; }
long outer(long n) { long s = 0; for (;;) s += inner(n); return s; }
auto said = puts("ready") + fflush(nullptr);
auto never = outer(100000);
