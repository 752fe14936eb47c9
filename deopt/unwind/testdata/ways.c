/* A function that is left in as many ways as its caller's frame can be found: nothing of it
   but its code is shown to the unwinder. It never returns, and is called through a pointer.
   With two arguments, a frame further out keeps a frame pointer. */
#include <string.h>

#define FUNCTION __attribute__((noipa)) long

FUNCTION trap(long n)
{
	__asm__ volatile("int3");
	return n;
}

FUNCTION endless(long n)
{
	for (;;)
		n += trap(n);
}

/* Most of its frame is what it was. */
FUNCTION roomy(long n)
{
	volatile char unused[2048];
	unused[2047] = 1;
	for (;;)
		n += trap(n) + unused[2047];
}

/* It has a frame pointer, and room where earlier did. */
__attribute__((noipa, optimize("no-omit-frame-pointer"))) long kept(long n)
{
	volatile char unused[256];
	unused[0] = 1;
	for (;;)
		n += trap(n) + unused[0];
}

FUNCTION nothing(long n)
{
	return n;
}

/* It calls and returns: where its call returned to stays on the stack. */
__attribute__((noipa, optimize("no-omit-frame-pointer"))) long earlier(long n)
{
	return nothing(n) + n;
}

FUNCTION calls(long (*volatile f)(long), long n)
{
	if (f == kept)
		n += earlier(n);
	return f(n) + n;
}

__attribute__((noipa, optimize("no-omit-frame-pointer"))) long linked(long (*f)(long), long n)
{
	return calls(f, n) + n;
}

int main(int argc, char **argv)
{
	long (*f)(long) = argc > 1 && !strcmp(argv[1], "roomy") ? roomy : endless;
	if (argc > 1 && !strcmp(argv[1], "kept"))
		f = kept;
	return (int)(argc > 2 ? linked(f, argc) : calls(f, argc));
}
