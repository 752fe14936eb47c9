/* Code without CFI, but with frame pointers or what stands for them: what many compilers that
   run in a process write. Compiled apart, with -fno-asynchronous-unwind-tables. */
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
