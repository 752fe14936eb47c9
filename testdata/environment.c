// Calls @entry in a floating-point environment that is not the default one: MXCSR is 0x9fc0 (subnormal operands and
// results are zero). With an argument a signal interrupts it, in whose handler, where the environment is the default one, the
// process waits; otherwise it waits in the callee of @entry.
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

double entry(double, double, double, double);
static int interrupted;
static volatile sig_atomic_t waits = 1;

static void handler(int signal)
{
	(void)signal;
	while (waits)
		pause();
}

long wait_here(long n)
{
	puts("ready");
	fflush(stdout);
	if (interrupted)
		raise(SIGUSR1);
	else
		pause();
	return n;
}

int main(int argc, char **argv)
{
	unsigned mxcsr = 0x9fc0;
	interrupted = argc > 1;
	(void)argv;
	signal(SIGUSR1, handler);
	__asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
	double r = entry(1e-300, 1e-15, 1, 3);
	return r == 0;
}
