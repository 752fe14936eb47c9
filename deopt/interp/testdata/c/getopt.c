// Command lines taken apart in each order that getopt knows, with what is wrong with them.
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int flagged;
static const struct option table[] = {
  {"add", 1, 0, 0},     {"append", 0, 0, 0},    {"delete", 1, 0, 'd'}, {"verbose", 0, &flagged, 7}, {"create", 1, 0, 'c'},
  {"file", 2, 0, 1000}, {"filter", 0, 0, 1001}, {"same", 0, 0, 's'},   {"samesame", 0, 0, 's'},     {0, 0, 0, 0},
};

enum how { SHORT, LONG, ONLY };

static void run(enum how how, const char *letters, const char *line) {
  char text[200], *argv[32];
  int argc = 0, code, index = -1;
  strcpy(text, line);
  argv[argc++] = "program";
  for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) argv[argc++] = word;
  argv[argc] = NULL;
  printf("%d '%s' %s\n", how, letters, line);
  optind = 0;
  flagged = 0;
  for (int n = 0; n < 40; n++) {
    index = -1;
    if (how == SHORT) code = getopt(argc, argv, letters);
    else if (how == LONG) code = getopt_long(argc, argv, letters, table, &index);
    else code = getopt_long_only(argc, argv, letters, table, &index);
    printf("  %d %d %s", code, optind, optarg ? optarg : "(null)");
    if (code == '?' || code == ':') printf(" optopt %d", optopt);
    if (index >= 0) printf(" index %d", index);
    printf(" flagged %d\n", flagged);
    if (code == -1) break;
  }
  for (int k = 0; k < argc; k++) printf("  [%s]", argv[k]);
  printf("\n");
}

static const char *lines[] = {
  "",
  "-a -b value -c",
  "-ab value rest -c more",
  "one -a two -b three four -bfive -- -c -d",
  "-x -a -: -;",
  "-b",
  "one two three -a four -c five six -b",
  "- -a - -b - -",
  "-cattached -c detached -a",
  "-a -- -b",
  "one -- two",
  "--add 1 --append --delete=2 three --verbose --create",
  "--add=x=y --file --file=name --fil --fi --ver --same --sam=1",
  "--nothing --append=1 --add",
  "-W add=1 -Wverbose -W create 5 -W",
  "-add 1 -append -file=2 -fi -b x -nothing -a -xyz -verbose",
  "-a --=1 -- x",
  "--app --ap --a 1 --",
};

int main(void) {
  const char *letters[] = {"ab:c::", "+ab:c::", "-ab:c::", ":ab:c::", "ab:W;", "", "+:b:", "-:b:c:"};
  printf("%d %d %d %s\n", optind, opterr, optopt, optarg ? optarg : "(null)");
  for (int how = SHORT; how <= ONLY; how++)
    for (unsigned l = 0; l < sizeof letters / sizeof *letters; l++)
      for (unsigned k = 0; k < sizeof lines / sizeof *lines; k++) run(how, letters[l], lines[k]);
  opterr = 0;
  run(LONG, "a", "-b --nothing");
  return 0;
}
