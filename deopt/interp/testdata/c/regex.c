// <regex.h>: what programs do with it, and random expressions.
#define UNLIMITED
#define main pairs
#include "../../internal/regex/testdata/pairs.c"
#undef main

static void show(const char *pattern, int flags, const char *text) {
  regex_t r, copy;
  regmatch_t m[5];
  char message[100], start[8];
  int error = regcomp(&r, pattern, flags);
  if (error) {
    size_t n = regerror(error, &r, message, sizeof message);
    printf("%s: %d %s (%d)", pattern, error, message, (int)n);
    n = regerror(error, 0, start, sizeof start);
    printf(" %s (%d) %d\n", start, (int)n, (int)regerror(error, &r, 0, 0));
    return;
  }
  copy = r;
  printf("%s on %s: %d groups", pattern, text, (int)r.re_nsub);
  int got = regexec(&copy, text, 5, m, 0);
  printf(" %d", got);
  if (!got && !(flags & REG_NOSUB))
    for (int k = 0; k < 5; k++) printf(" %d,%d", (int)m[k].rm_so, (int)m[k].rm_eo);
  printf(" %d %d %d\n", regexec(&r, text, 0, 0, REG_NOTBOL), regexec(&r, text, 0, 0, REG_NOTEOL), regexec(&r, text, 0, 0, 8));
  regfree(&r);
  regfree(&r);
}

int main(void) {
  static const char *const patterns[] = {
      "^([a-z]+)=(.*)$", "(a|ab)(c|bcd)(d*)", "([0-9]{1,3}\\.){3}[0-9]{1,3}", "[[:space:]]*([^[:space:]]+)", "", "a**", "(", ")", "[a", "[[:foo:]]", "a{2", "a{2,1}", "*a", "a\\", "[b-a]",
      "a{99999}", "(x)(y)?(z)?", "^#", "\\(a\\)\\{2\\}", "\\(^a\\|b$\\)*", "\\.c$", "[]-a]", "[^]]+", "\\<w\\w*\\>"};
  static const char *const texts[] = {"key=value", "abcd", "x 192.168.1.20 y", "  two words", "", "# comment", "a.c", "aab", "x]z"};
  for (unsigned k = 0; k < sizeof patterns / sizeof *patterns; k++)
    for (int flags = 0; flags < 16; flags += flags ? 5 : 1)
      for (unsigned t = 0; t < sizeof texts / sizeof *texts; t++) show(patterns[k], flags, texts[t]);
  // All matches of a line, as editors find them.
  regex_t r;
  regmatch_t m[2];
  const char *line = "one, two; three";
  regcomp(&r, "([a-z])[a-z]*", REG_EXTENDED);
  for (const char *at = line; !regexec(&r, at, 2, m, at > line ? REG_NOTBOL : 0); at += m[0].rm_eo) printf("%.*s/%c ", (int)(m[0].rm_eo - m[0].rm_so), at + m[0].rm_so, at[m[1].rm_so]);
  m[0].rm_so = 4, m[0].rm_eo = 7;
  printf("%d %d %d\n", regexec(&r, line, 2, m, REG_STARTEND), (int)m[0].rm_so, (int)m[0].rm_eo);
  regfree(&r);
  char *args[] = {"", "11", "700", 0};
  return pairs(3, args);
}
