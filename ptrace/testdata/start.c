/* A program that is nothing but its first instruction: gdb gives its registers values there. */
__attribute__((section(".data"))) int data = 1;

void _start(void)
{
	for (;;)
		data++;
}
