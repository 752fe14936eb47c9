/* Two calls of one function of another module: the first has to be bound. */
#include <unistd.h>

__attribute__((noipa)) long calls(long n)
{
	__asm__ volatile("int3");
	n += getppid();
	__asm__ volatile("int3");
	return n + getppid();
}

int main(int argc, char **argv)
{
	return (int)calls(argc);
}
