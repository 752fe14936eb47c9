// Calls one of the recursive functions of a module: runaway FUNCTION DEPTH.
#include <stdlib.h>
#include <string.h>

long levels(long), ping(long);

int main(int argc, char **argv) {
  long n = atol(argv[2]);
  return (strcmp(argv[1], "levels") ? ping(n) : levels(n)) == n;
}
