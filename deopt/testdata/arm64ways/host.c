// Enters f with one number, through a pointer or directly. f calls stub, which loses the link register: directly, or through the pointer that it gets.
//
//	gcc -nostdlib -static -DNUMBER=1 -DENTRY=pointer host.c f.o
long f(long, void *);
void stub(void);
long (*volatile pointer)(long, void *) = f;

__attribute__((noinline)) void boom(void) { *(volatile int *)8 = 1; }
__asm__(".text\n.globl stub\n.type stub,%function\nstub:\n.cfi_startproc\nmov x9,#1\nbl boom\nbrk #1\n.cfi_endproc\n.size stub,.-stub\n"
	".globl _start\n.type _start,%function\n_start:\n.cfi_startproc\n.cfi_undefined x30\n"
	"mov x29,#0\nmov x30,#0\nbl start\nbrk #2\n.cfi_endproc\n.size _start,.-_start\n");

__attribute__((noinline)) long run(long n) {
	long r = ENTRY(n, (void *)stub);
	__asm__ volatile("");
	return r + 1;
}

void start(void) {
	run(NUMBER);
	__asm__ volatile("");
	for (;;)
		;
}
