// Runs a coroutine on a stack that is an array of a function, whose frame lies right above. The first function of the coroutine has no caller.
#include <stdio.h>
#include <unistd.h>

__asm__(".text\n.globl tramp\n.type tramp,@function\ntramp:\n.cfi_startproc\n.cfi_undefined rip\n.cfi_def_cfa rsp,0\n"
	"call co\nud2\n.cfi_endproc\n.size tramp,.-tramp\n"
	".globl go\n.type go,@function\ngo:\n.cfi_startproc\nmovq %rsp,saved(%rip)\nmovq %rdi,%rsp\njmp tramp\n.cfi_endproc\n.size go,.-go\n");

void *saved;
void go(void *);

__attribute__((noinline)) void leaf(void) {
	printf("ready\n");
	fflush(stdout);
	for (;;)
		pause();
}

void co(void) {
	leaf();
	__asm__ volatile("");
}

__attribute__((noinline)) int inner(int n) {
	_Alignas(16) char stack[16384];
	__asm__ volatile("" ::"r"(stack) : "memory");
	go(stack + sizeof stack);
	return stack[n];
}

__attribute__((noinline)) int outer(int n) {
	int r = inner(n);
	__asm__ volatile("");
	return r + 1;
}

int main(int count, char **arguments) {
	(void)arguments;
	return outer(count);
}
