// Tests whether breakpoints in debug registers work here: a process reaches an instruction in its debug register 0 twenty times, and the
// number of stops is printed. Some virtual machines accept the registers, but never stop.
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

extern char place;

__attribute__((noinline)) static long twenty(void) {
	long x = 0;
	for (int i = 0; i < 20; i++)
		__asm__ volatile(".globl place\nplace: add $1, %0" : "+r"(x));
	return x;
}

int main(void) {
	pid_t child = fork();
	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		_exit(twenty() != 20);
	}
	int status, stops = 0;
	waitpid(child, &status, 0);
	ptrace(PTRACE_POKEUSER, child, offsetof(struct user, u_debugreg[0]), &place);
	ptrace(PTRACE_POKEUSER, child, offsetof(struct user, u_debugreg[7]), 1);
	for (;;) {
		ptrace(PTRACE_CONT, child, 0, 0);
		if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
			break;
		stops++;
	}
	printf("%d\n", stops);
	return 0;
}
