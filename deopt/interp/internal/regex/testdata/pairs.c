// Prints what glibc says of random regular expressions and subjects: seed and number are the arguments. A line is
// flags of regcomp, flags of regexec, the number of spans asked for, where to start, the expression, the subject (both in hexadecimal), the
// error or the number of groups, and the spans, "no", or "hangs" where glibc goes round in a circle.
#include <regex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef UNLIMITED
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

static sigjmp_buf out;

static volatile int compiling;

// What glibc takes exponential time to compile ends the program, as nothing can be freed.
static void late(int signal) {
  if (compiling) {
    fflush(stdout);
    _exit(0);
  }
  siglongjmp(out, signal);
}
#endif

static uint64_t state;

static unsigned draw(unsigned n) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(state >> 33) % n;
}

static char pattern[400], subject[100];
static int extended, level;

static void put(const char *s) {
  if (strlen(pattern) + strlen(s) < sizeof pattern - 1) strcat(pattern, s);
}

static void one(const char *basic, const char *ext) { put(extended ? ext : basic); }

static void bracket(void) {
  static const char *const items[] = {"a", "b", "a-c", "A-C", "[:alpha:]", "[:upper:]", "[:space:]", "[:digit:]", "[:punct:]", "[=a=]", "[.b.]", "-", "_", "\\", "^", "\n", "0-9", "[.-.]", "[.a.]-c", "b-a", "[:none:]", "[", "*"};
  put(draw(4) ? "[" : "[^");
  if (!draw(10)) put("]");
  unsigned n = 1 + draw(3);
  // The last ones are mistakes more often than not.
  for (unsigned k = 0; k < n; k++) put(items[draw(draw(12) ? 13 : sizeof items / sizeof *items)]);
  if (draw(60)) put("]");
}

static void expression(int depth);

static void atom(int depth) {
  char text[2] = {0};
  switch (draw(24)) {
  case 0: case 1: case 2: case 3: case 4: case 5: put("a"); break;
  case 6: case 7: case 8: case 9: put("b"); break;
  case 10: put("c"); break;
  case 11: put("."); break;
  case 12: bracket(); break;
  case 13: put(draw(level) == 1 ? "\n" : draw(2) ? " " : "_"); break;
  case 14: text[0] = "AB1,x-{}"[draw(level > 1 ? 8 : 6)]; put(text); break;
  case 15: {
    static const char *const odd[] = {"^", "$", "\\<", "\\>", "\\b", "\\B", "\\`", "\\'", "\\w", "\\W", "\\s", "\\S", "\\.", "\\a", "\\*", "\\^", "\\$", "\\n", "\\[", "]"};
    put(odd[draw(level > 1 ? sizeof odd / sizeof *odd : 2)]);
    break;
  }
  default:
    if (depth <= 0) {
      put("a");
      break;
    }
    one("\\(", "(");
    if (draw(20)) expression(depth - 1);
    if (draw(80)) one("\\)", ")");
  }
}

static void piece(int depth) {
  atom(depth);
  for (int again = 0; !draw(3) && again < (level > 2 ? 3 : 1); again++)
    switch (draw(8)) {
    case 0: case 1: case 2: put("*"); break;
    case 3: one("\\+", "+"); break;
    case 4: case 5: one("\\?", "?"); break;
    default: {
      static const char *const bounds[] = {"0", "1", "2", "3", "0,1", "1,2", "0,2", "1,", "0,", "2,3", ",2", "2,4", "0,0", "1,1", ",", "", "2,1", "x", "1,x", "40000", "1,2,3"};
      one("\\{", "{");
      put(bounds[draw(draw(10) ? 12 : sizeof bounds / sizeof *bounds)]);
      if (draw(60)) one("\\}", "}");
    }
    }
}

static void expression(int depth) {
  unsigned branches = draw(3) ? 1 : 2 + !draw(5);
  for (unsigned k = 0; k < branches; k++) {
    if (k) one("\\|", "|");
    if (level > 1 && !draw(12)) put("^");
    unsigned n = draw(25) ? 1 + draw(3) : 0;
    for (unsigned p = 0; p < n; p++) piece(depth);
    if (level > 1 && !draw(12)) put("$");
  }
}

static void hex(const char *s) {
  putchar('x');
  for (; *s; s++) printf("%02x", (unsigned char)*s);
  putchar(' ');
}

int main(int argc, char **argv) {
  state = strtoull(argv[1], 0, 0);
#ifndef UNLIMITED
  signal(SIGVTALRM, late);
#endif
  for (volatile long n = atol(argv[2]); n > 0; n--) {
    regex_t r;
    regmatch_t m[12];
    level = 1 + draw(4);
    int flags = (extended = draw(3) > 0) | (draw(5) ? 0 : REG_ICASE) | (draw(3) ? 0 : REG_NEWLINE) | (draw(12) ? 0 : REG_NOSUB);
    pattern[0] = 0;
    expression(3);
    memset(&r, 0, sizeof r);
#ifndef UNLIMITED
    // Of the program's own time, of which others take microseconds.
    struct itimerval limit = {.it_value.tv_usec = 200000}, none = {0};
    compiling = 1;
    setitimer(ITIMER_VIRTUAL, &limit, 0);
#endif
    volatile int error = regcomp(&r, pattern, flags);
#ifndef UNLIMITED
    setitimer(ITIMER_VIRTUAL, &none, 0);
    compiling = 0;
#endif
    for (volatile int t = 0; t < 4; t++) {
      unsigned len = draw(12), want = draw(4) ? 10 : draw(3), from = 0;
      static const char letters[] = "aaaaaabbbbbcccaabb AB1_x,\n\n\200-{}";
      for (unsigned k = 0; k < len; k++) subject[k] = letters[draw(level > 1 ? sizeof letters - 1 : 18)];
      subject[len] = 0;
      int match = draw(5) ? 0 : draw(4);
      for (unsigned k = 0; k < 12; k++) m[k].rm_so = m[k].rm_eo = -9;
      if (!draw(8)) {
        match |= REG_STARTEND;
        m[0].rm_so = from = draw(len + 1);
        m[0].rm_eo = len;
      }
      printf("%d %d %u %u ", flags, match, want, from);
      hex(pattern);
      hex(subject);
      if (error) {
        printf("%d\n", -error);
        break;
      }
      printf("%d", (int)r.re_nsub);
#ifndef UNLIMITED
      if (sigsetjmp(out, 1)) {
        printf(" hangs\n");
        error = -1; // it holds a lock, and its memory is lost
        break;
      }
      setitimer(ITIMER_VIRTUAL, &limit, 0);
#endif
      int got = regexec(&r, subject, want, m, match);
#ifndef UNLIMITED
      setitimer(ITIMER_VIRTUAL, &none, 0);
#endif
      if (got) printf(" no");
      else if (!(flags & REG_NOSUB))
        for (unsigned k = 0; k < want; k++) printf(" %d,%d", m[k].rm_so, m[k].rm_eo);
      printf("\n");
    }
    if (!error) regfree(&r);
  }
  return 0;
}
