// Recurses as deep as its argument says, and waits there; with a negative one until its stack overflows, and waits in the handler of that.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char alternate[1 << 16];

static volatile int waits = 1;

static void wait_here(void)
{
	puts("ready");
	fflush(stdout);
	while (waits)
		pause();
}

static void overflowed(int signal)
{
	(void)signal;
	wait_here();
}

__attribute__((noinline, optimize("no-optimize-sibling-calls"))) long recurse(long n)
{
	if (n == 0) {
		wait_here();
		return 0;
	}
	return recurse(n - 1) + n;
}

int main(int argc, char **argv)
{
	stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
	struct sigaction action = {.sa_handler = overflowed, .sa_flags = SA_ONSTACK};
	sigaltstack(&stack, NULL);
	sigaction(SIGSEGV, &action, NULL);
	return argc > 1 ? (int)recurse(atol(argv[1])) : 0;
}
