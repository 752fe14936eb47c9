/* Code whose CFI a test keeps to itself: what compilers that run in a process write has none. */
static __attribute__((noinline)) long third(long (*f)(long), long n)
{
	long x = f(n);
	return x * 3;
}

static __attribute__((noinline)) long second(long (*f)(long), long n)
{
	volatile long kept[6];
	kept[n & 3] = n;
	return third(f, n + 1) + kept[n & 3];
}

long first(long (*f)(long), long n)
{
	return second(f, n + 1) + n;
}

long caught(long n)
{
	volatile long kept = n;
	__asm__ volatile("int3");
	return kept;
}
