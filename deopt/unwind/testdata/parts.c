/* Calls the function of parts.ll. */
extern long split(long);

__attribute__((noipa)) void stops(long n)
{
	__asm__ volatile("int3" : : "r"(n));
}

int main(int argc, char **argv)
{
	return (int)split(argc + 2);
}
