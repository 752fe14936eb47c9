/* stacks WAY: a process that waits in, or runs through, one kind of stack. It prints "ready" when it is there. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 31 };

static atomic_int there;
static pthread_mutex_t taken = PTHREAD_MUTEX_INITIALIZER;
static int ends[2];

static void ready(void)
{
	puts("ready");
	fflush(stdout);
}

static void sleeps(void)
{
	struct timespec day = {86400, 0};
	for (;;)
		nanosleep(&day, NULL);
}

static void waits(void)
{
	for (;;)
		pause();
}

static void reads(void)
{
	char c;
	for (;;)
		if (read(ends[0], &c, 1) < 0)
			abort();
}

static void locks(void)
{
	pthread_mutex_lock(&taken);
}

static volatile long work;

static void spins(void)
{
	for (;;)
		work = work * 3 + 1;
}

/* Holds values in callee-saved registers, and more on the stack at each level. */
static __attribute__((noinline)) long down(int n, void (*end)(void))
{
	volatile char space[32 + 8 * 7];
	long a = n * 3L, b = n * 5L, c = n * 7L;
	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c));
	space[n % 16] = (char)n;
	if (n == 0) {
		there++;
		end();
	} else {
		a += down(n - 1, end);
	}
	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c));
	return a + b + c + space[n % 16];
}

static void *thread(void *arg)
{
	static void (*const ways[])(void) = {sleeps, waits, reads, locks};
	long n = (long)arg;
	down((int)n, n == 30 ? spins : ways[n % 4]);
	return NULL;
}

static int compare(const void *a, const void *b)
{
	down(*(const int *)a % 5, waits);
	return *(const int *)a - *(const int *)b;
}

/* In a handler, called back from libc. */
static void handler(int number)
{
	int numbers[] = {7, 8, 9};
	(void)number;
	ready();
	qsort(numbers, 3, sizeof numbers[0], compare);
}

static void faults(void)
{
	*(volatile int *)(long)(work + 8) = 1;
}

static void on(int number, int flags)
{
	static char space[1 << 16];
	stack_t stack = {.ss_sp = space, .ss_size = sizeof space};
	struct sigaction action;
	memset(&action, 0, sizeof action);
	action.sa_handler = handler;
	action.sa_flags = flags;
	sigaltstack(&stack, NULL);
	sigaction(number, &action, NULL);
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";
	if (!strcmp(way, "altstack")) { /* a fault, handled on another stack */
		on(SIGSEGV, SA_ONSTACK);
		down(9, faults);
	}
	if (!strcmp(way, "handler")) { /* a signal that interrupted a system call */
		on(SIGALRM, 0);
		alarm(1); /* even the slowest machine has made four calls by then */
		down(4, sleeps);
	}
	if (!strcmp(way, "nanosleep")) {
		ready();
		down(12, sleeps);
	}
	if (!strcmp(way, "vdso")) {
		ready();
		for (struct timespec now;;)
			clock_gettime(CLOCK_MONOTONIC, &now);
	}
	if (!strcmp(way, "threads")) {
		pthread_t t;
		if (pipe(ends) || pthread_mutex_lock(&taken))
			return 1;
		for (long i = 0; i < THREADS; i++)
			if (pthread_create(&t, NULL, thread, (void *)i))
				return 1;
		while (there < THREADS)
			usleep(1000);
		ready();
		waits();
	}
	return 64;
}
