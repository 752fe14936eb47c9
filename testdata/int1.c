// int1: prints 1 if the pc of the SIGTRAP of an INT1 is after the instruction, and 0 if it is at the instruction.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

extern char place;

static void handle(int signal, siginfo_t *info, void *context) {
	(void)signal, (void)info;
	ucontext_t *c = context;
	printf("%d\n", c->uc_mcontext.gregs[REG_RIP] != (long)&place);
	exit(0);
}

int main(void) {
	struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
	sigaction(SIGTRAP, &action, NULL);
	__asm__ volatile(".globl place\nplace: .byte 0xf1");
	return 1;
}
