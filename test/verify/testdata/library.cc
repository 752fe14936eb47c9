// library: calls functions of the C and C++ libraries that the interpreter does not model.
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <list>
#include <map>
#include <regex.h>
#include <unordered_map>

__attribute__((noinline)) static int trees(int n) {
  std::map<int, int> m;
  for (int k = 0; k < 9; k++) m[k * n % 7] += k;
  m.erase(n % 7);
  int sum = 0;
  for (auto &[key, value] : m) sum = sum * 3 + key - value;
  return sum;
}

__attribute__((noinline)) static int chains(int n) {
  std::list<int> l{n, 4, 2};
  l.reverse();
  l.push_front(n + 1);
  std::unordered_map<int, int> u;
  for (int k : l) u[k] += n;
  return l.front() * 100 + u[2] * 10 + int(u.size());
}

__attribute__((noinline)) static int texts(int n) {
  char text[40];
  int day = 0, year = 0;
  std::time_t at = 86400L * 365 * n;
  std::tm t;
  std::strftime(text, sizeof text, "%d %Y", gmtime_r(&at, &t));
  std::sscanf(text, "%d %d", &day, &year);
  regex_t r;
  regmatch_t match[1];
  if (regcomp(&r, "[0-9]+$", REG_EXTENDED) || regexec(&r, text, 1, match, 0)) return -1;
  regfree(&r);
  return year * 100 + day * 10 + int(match[0].rm_so);
}

__attribute__((noinline)) static double numbers(int n) {
  std::complex<double> z(n, 1);
  std::srand(n);
  return std::abs(z * z / std::complex<double>(2, n)) + std::rand() % 10;
}

int main() {
  int a = trees(2), b = chains(2), c = texts(2);
  std::printf("%d %d %d %g\n", a, b, c, numbers(2));
}
