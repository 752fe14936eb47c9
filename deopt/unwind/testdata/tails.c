/* Functions that leave by a jump to another one: their frames are gone. The argument picks a
   chain of calls, and every one ends in a trap. tailslib.c has the far functions. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTION __attribute__((noipa)) long

extern long far_jumps(long), far_stops(long), far_jumps_on(long (*)(long), long);

FUNCTION stops(long n)
{
	__asm__ volatile("int3");
	return n;
}

FUNCTION jumps(long n)
{
	return stops(n + 1);
}

FUNCTION jumps_twice(long n)
{
	return jumps(n * 2);
}

/* Nothing but a jump. */
FUNCTION only_jumps(long n)
{
	return jumps(n);
}

FUNCTION jumps_far(long n)
{
	return far_stops(n - 1);
}

FUNCTION jumps_by_pointer(long (*volatile *f)(long), long n)
{
	return (*f)(n + 1);
}

/* Its stack is given back before it jumps. */
FUNCTION jumps_later(long n)
{
	char a[64];
	memset(a, (int)n, sizeof a);
	__asm__ volatile("" : : "r"(a) : "memory");
	stops(0);
	return stops(n);
}

FUNCTION repeats(long n)
{
	if (n > 0)
		return repeats(n - stops(n));
	return n;
}

FUNCTION odd(long n);
FUNCTION even(long n)
{
	return n ? odd(n - 1) : stops(n);
}
FUNCTION odd(long n)
{
	return n ? even(n - 1) : stops(n);
}

extern void rare(long) __attribute__((cold));
__attribute__((noipa, cold)) void rare(long n)
{
	__asm__ volatile("int3" : : "r"(n));
}

/* The unlikely part goes to a function of the linker's own choosing: splits.cold. */
FUNCTION splits(long n)
{
	if (__builtin_expect(n > 2, 0)) {
		rare(n);
		n += 7;
		rare(n + 1);
	}
	return n + 1;
}

__attribute__((noipa, noreturn)) void never(long n)
{
	stops(n);
	abort();
}

FUNCTION calls_never(long n)
{
	if (n)
		never(n);
	return n;
}

static void handler(int number)
{
	stops(number);
}

FUNCTION copies(void *to, void *from, long n)
{
	memcpy(to, from, n);
	return n + 1;
}

/* Called by a way of their own each. */
FUNCTION direct(long n) { return jumps(n) + 1; }
FUNCTION twice(long n) { return jumps_twice(n) + 1; }
FUNCTION stub(long n) { return only_jumps(n) + 1; }
FUNCTION through_plt(long n) { return far_jumps(n) + 1; }
FUNCTION to_plt(long n) { return jumps_far(n) + 1; }
FUNCTION far_and_back(long n) { return far_jumps_on(jumps, n) + 1; }
FUNCTION pointer(long n)
{
	static long (*volatile f)(long) = stops;
	return jumps_by_pointer(&f, n) + 1;
}
FUNCTION by_pointer(long (*volatile f)(long), long n) { return f(n) + 1; }
FUNCTION later(long n) { return jumps_later(n) + 1; }
FUNCTION repeat(long n) { return repeats(n) + 1; }
FUNCTION mutual(long n) { return even(n) + 1; }
FUNCTION cold(long n) { return splits(n) + 1; }
FUNCTION ended(long n) { return calls_never(n) + 1; }

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";
	long n = 0;
	if (!strcmp(way, "direct")) n = direct(3);
	if (!strcmp(way, "twice")) n = twice(3);
	if (!strcmp(way, "stub")) n = stub(3);
	if (!strcmp(way, "through_plt")) n = through_plt(3);
	if (!strcmp(way, "to_plt")) n = to_plt(3);
	if (!strcmp(way, "far_and_back")) n = far_and_back(3);
	if (!strcmp(way, "pointer")) n = pointer(3);
	if (!strcmp(way, "by_pointer")) n = by_pointer(jumps, 3);
	if (!strcmp(way, "later")) n = later(3);
	if (!strcmp(way, "repeat")) n = repeat(3);
	if (!strcmp(way, "mutual")) n = mutual(3);
	if (!strcmp(way, "cold")) n = cold(3);
	if (!strcmp(way, "ended")) n = ended(3);
	if (!strcmp(way, "copies")) {
		signal(SIGSEGV, handler);
		n = copies((void *)8, &n, argc * 4000);
	}
	return (int)n;
}
