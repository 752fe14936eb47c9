/* Stacks to unwind on other architectures: the argument picks one, and every way ends in an
   access to address 16, at which nothing is. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

extern long first(long (*)(long), long); /* qemubare.c */

/* Two general and two floating-point registers that callees keep. */
#if defined(__aarch64__)
#define G1 "x19"
#define G2 "x28"
#define F1 "d8"
#define F2 "d15"
#define DOUBLE "+w"
#elif defined(__powerpc64__)
#define G1 "r14"
#define G2 "r30"
#define F1 "fr14"
#define F2 "fr31"
#elif defined(__riscv)
#define G1 "s1"
#define G2 "s11"
#define F1 "fs0"
#define F2 "fs11"
#elif defined(__s390x__)
#define G1 "r6"
#define G2 "r10"
#define F1 "f8"
#define F2 "f15"
#endif

#ifndef DOUBLE
#define DOUBLE "+f"
#endif

static long *volatile nowhere = (long *)16;

/* A leaf: the return address is still where the call put it. */
static __attribute__((noinline)) long faults(long n)
{
	return *nowhere + n;
}

static long (*volatile bottom)(long) = faults;

/* Every activation holds numbers of its own in registers that callees keep. */
__attribute__((noinline)) long deep(long n)
{
	register long a __asm__(G1) = 0xa0000 + n;
	register long b __asm__(G2) = 0xb0000 + n;
	register double x __asm__(F1) = 1000.5 + n;
	register double y __asm__(F2) = 2000.25 + n;
	__asm__ volatile("" : "+r"(a), "+r"(b), DOUBLE(x), DOUBLE(y));
	long r = n ? deep(n - 1) : bottom(n);
	__asm__ volatile("" : "+r"(a), "+r"(b), DOUBLE(x), DOUBLE(y));
	return r + a + b + (long)(x + y);
}

/* Run-time stack size. */
static __attribute__((noinline)) long grows(long n)
{
	char *p = __builtin_alloca(n);
	memset(p, 2, n);
	__asm__ volatile("" : : "r"(p) : "memory");
	return deep(3) + p[0];
}

static int compare(const void *a, const void *b)
{
	return (int)deep(2) + *(const int *)a - *(const int *)b;
}

static volatile int handlers; /* that may still run when something faults */

static void handler(int number)
{
	if (--handlers == 0)
		signal(number, SIG_DFL);
	deep(handlers + 2);
}

static void handle(int flags)
{
	struct sigaction a;
	memset(&a, 0, sizeof a);
	a.sa_handler = handler;
	a.sa_flags = flags;
	sigaction(SIGSEGV, &a, 0);
}

static void other_stack(void)
{
	static char space[1 << 16];
	stack_t s;
	memset(&s, 0, sizeof s);
	s.ss_sp = space;
	s.ss_size = sizeof space;
	sigaltstack(&s, 0);
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "deep";
	if (!strcmp(way, "deep"))
		return (int)deep(19);
	if (!strcmp(way, "grows"))
		return (int)grows(argc * 50);
	if (!strcmp(way, "callback")) {
		int a[] = {3, 1, 2};
		qsort(a, 3, sizeof a[0], compare);
	}
	if (!strcmp(way, "altstack")) {
		other_stack();
		handle(SA_ONSTACK);
		handlers = 1;
		return (int)deep(1);
	}
	if (!strcmp(way, "nested")) {
		handle(SA_NODEFER | SA_SIGINFO);
		handlers = 2;
		return (int)deep(0);
	}
	if (!strcmp(way, "bare"))
		return (int)first(deep, 3);
	return 1;
}
