/* Stacks seen in the field. The argument selects one.
     overflow  a handler on another stack of a signal that came because the stack is full
     deep      a stack in several pieces, where this was built with -fsplit-stack
     sort      a call back out of the C library */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A symbol without a size, before all functions. */
__asm__(".text\n.globl unsized\n.type unsized, @function\nunsized: ret\n");

static volatile int waits = 1;

static void wait_here(void)
{
	puts("ready");
	fflush(stdout);
	while (waits)
		pause();
}

/* The frames are larger than the guard page below a stack. */
__attribute__((noipa)) static long fill(long n)
{
	volatile char room[40000];
	room[n % 100] = 1;
	return waits ? fill(n + 1) + room[0] : n;
}

static void full(int signal)
{
	(void)signal;
	wait_here();
}

static long overflow(void)
{
	static char stack[65536];
	stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
	struct sigaction action = {.sa_handler = full, .sa_flags = SA_ONSTACK};
	sigaltstack(&other, NULL);
	sigaction(SIGSEGV, &action, NULL);
	return fill(0);
}

__attribute__((noipa)) static long deep(long n)
{
	volatile char room[4000];
	room[0] = 1;
	if (n)
		return deep(n - 1) + room[0];
	wait_here();
	return room[0];
}

static int order(const void *a, const void *b)
{
	static int calls;
	if (++calls == 3)
		wait_here();
	return *(const int *)a - *(const int *)b;
}

__attribute__((noipa)) static long sort(long n)
{
	int list[] = {4, 2, 7, 1, 9, 3, 8, 5};
	if (n)
		return sort(n - 1) + 1;
	qsort(list, sizeof list / sizeof *list, sizeof *list, order);
	return list[0];
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	if (!strcmp(how, "overflow"))
		return (int)overflow();
	if (!strcmp(how, "deep"))
		return (int)deep(100);
	return (int)sort(6);
}
