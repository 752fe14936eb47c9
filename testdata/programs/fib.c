// Prints the Fibonacci number with the index in its argument.
#include <stdio.h>
#include <stdlib.h>

static long fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

int main(int argc, char **argv) {
	printf("%ld\n", fib(argc > 1 ? atoi(argv[1]) : 10));
	return 0;
}
