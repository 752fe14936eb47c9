// Enters f, g, h or k with one number, through a pointer or directly. They call stub, which loses the link register: directly, or through their
// pointer argument. run keeps the first value of changed in a register.
//
//	gcc -nostdlib -static -DNUMBER=1 -DENTRY=pointer -DPOINTER=g host.c f.o
long f(long, void *), g(long, void *), h(long, void *), k(long, void *);
void stub(void);
long (*volatile pointer)(long, void *) = POINTER;
long changed = 5;

__attribute__((noinline)) void boom(void)
{
	changed = 6;
	*(volatile int *)8 = 1;
}
__asm__(".text\n.globl stub\n.type stub,%function\nstub:\n.cfi_startproc\nmov x9,#1\nbl boom\nbrk #1\n.cfi_endproc\n.size stub,.-stub\n"
	".globl outer\n.type outer,%function\nouter:\n.cfi_startproc\nbl stub\nbrk #3\n.cfi_endproc\n.size outer,.-outer\n"
	".globl _start\n.type _start,%function\n_start:\n.cfi_startproc\n.cfi_undefined x30\n"
	"mov x29,#0\nmov x30,#0\nbl start\nbrk #2\n.cfi_endproc\n.size _start,.-_start\n");

__attribute__((noinline)) long run(long n) {
	long was = changed;
	long r = ENTRY(n, (void *)stub);
	__asm__ volatile("");
	return r + was;
}

void start(void) {
	run(NUMBER);
	__asm__ volatile("");
	for (;;)
		;
}
