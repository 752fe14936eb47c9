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

/* What the dynamic linker left on the stack, which differs between processors, is no part of this. */
FUNCTION wipe(long n)
{
	volatile char below[65536];
	for (unsigned long i = 0; i < sizeof below; i++)
		below[i] = 0;
	return n;
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

/* Where its calls returned to stays on the stack, all over the frame that comes there later. */
FUNCTION deep(long n)
{
	n += n > 40 ? nothing(n) : deep(n + 1);
	__asm__ volatile("" : "+r"(n)); /* no loop is made of it */
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
	if (f == roomy)
		n += deep(n);
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
	wipe(argc);
	return (int)(argc > 2 ? linked(f, argc) : calls(f, argc));
}
