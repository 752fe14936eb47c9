/* A program that consists of one instruction, where gdb sets its registers. */
__attribute__((section(".data"))) int data = 1;

void _start(void)
{
	for (;;)
		data++;
}
