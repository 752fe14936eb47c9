/* Code that is left without CFI, by what surrounds it. The argument picks how endless is called, which
   never returns and keeps no frame pointer. */
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

/* Its frame pointer is what leads out of endless: the call does not say where it goes. */
__attribute__((noipa, optimize("no-omit-frame-pointer"))) long owner(long (*volatile f)(long), long n)
{
	return f(n) + n;
}

/* As JITs call: the target is a number in a register. */
FUNCTION loads(long n)
{
	__asm__ volatile("movabs $endless, %%rax\n\tcall *%%rax" : "+D"(n) : : "rax", "memory");
	return n;
}

FUNCTION loads_r11(long n)
{
	__asm__ volatile("movabs $endless, %%r11\n\tcall *%%r11" : "+D"(n) : : "r11", "memory");
	return n;
}

/* Through an entry of a table that jumps through a word. */
__asm__(".text\n"
	"stub: jmp *slot(%rip)\n"
	".data\n.balign 8\n"
	"slot: .quad endless\n"
	".text\n");

FUNCTION through(long n)
{
	__asm__ volatile("call stub" : "+D"(n) : : "memory");
	return n;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	if (!strcmp(how, "owner"))
		return (int)owner(endless, argc);
	if (!strcmp(how, "loads"))
		return (int)loads(argc);
	if (!strcmp(how, "loads_r11"))
		return (int)loads_r11(argc);
	return (int)through(argc);
}
