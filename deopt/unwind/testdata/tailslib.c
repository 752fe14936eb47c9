/* The functions of tails.c in another module. */
#define FUNCTION __attribute__((noipa)) long

FUNCTION far_stops(long n)
{
	__asm__ volatile("int3");
	return n;
}

FUNCTION far_jumps(long n)
{
	return far_stops(n + 1);
}

FUNCTION far_jumps_on(long (*f)(long), long n)
{
	return f(n + 1);
}
