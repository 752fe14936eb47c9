// Calls: Ackermann's function and Fibonacci numbers, by recursion alone.
#include <stdio.h>

__attribute__((noinline)) static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

__attribute__((noinline)) static int ackermann(int m, int n) {
	if (m == 0)
		return n + 1;
	return ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

int main(void) {
	printf("%d %d\n", fib(32), ackermann(2, 300));
	return 0;
}
