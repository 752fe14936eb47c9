/* Functions whose prologues and epilogues differ: leaves, saved registers,
   run-time stack sizes, a realigned stack, and early returns. */
#include <alloca.h>
#include <string.h>

extern long sink(void *, long);

long leaf(long a, long b) { return a * b + 1; }

long keeps(long a, long b, long c, long d, long e)
{
	long x = sink(0, a), y = sink(0, b), z = sink(0, c);
	if (x == y)
		return z;
	return x + y * z + sink(0, d) - sink(0, e) + a + b + c;
}

long grows(long n)
{
	char *p = alloca(n);
	memset(p, 1, n);
	return sink(p, n) + n;
}

long realigned(long n)
{
	_Alignas(64) char big[256];
	char *p = alloca(n);
	big[n & 255] = 3;
	return sink(big, sink(p, n)) + big[7];
}

long pushes(long a)
{
	extern long many(long, long, long, long, long, long, long, long, long);
	return many(a, 1, 2, 3, 4, 5, 6, 7, 8) + many(1, a, 2, 3, 4, 5, 6, 7, 8);
}
