/* Stacks to unwind: the argument picks one, and every way ends in a trap. */
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern long first(long (*)(long), long); /* bare.c: no CFI */
extern long caught(long);

static __attribute__((noinline)) long trap(long n)
{
	__asm__ volatile("int3");
	return n;
}

static long (*bottom)(long) = trap;

/* Three moments: two in the same frame, and one in a frame further in. */
static __attribute__((noinline)) long moments(long n)
{
	volatile long local = n;
	__asm__ volatile("int3" : : "D"(1L));
	local = local + 1;
	__asm__ volatile("int3" : : "D"(2L));
	return trap(local) + local;
}

/* Every activation holds numbers of its own in registers that callees keep. */
__attribute__((noinline)) long deep(long n)
{
	register long b __asm__("rbx") = 0xb0000 + n;
	register long c __asm__("r12") = 0xc0000 + n;
	register long d __asm__("r13") = 0xd0000 + n;
	register long e __asm__("r14") = 0xe0000 + n;
	register long f __asm__("r15") = 0xf0000 + n;
	__asm__ volatile("" : "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
	long r = n ? deep(n - 1) : bottom(n);
	__asm__ volatile("" : "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
	return r + b + c + d + e + f;
}

/* Run-time stack size and a stack that is realigned. */
static __attribute__((noinline)) long realigned(long n)
{
	_Alignas(64) char big[256];
	char *p = alloca(n);
	memset(big, 1, sizeof big);
	memset(p, 2, n);
	__asm__ volatile("" : : "r"(p), "r"(big) : "memory");
	return deep(3) + big[n & 255] + p[0];
}

/* The call is the last instruction: the return address is past the end. */
static __attribute__((noinline, noreturn)) void dies(void)
{
	abort();
}

static int compare(const void *a, const void *b)
{
	return (int)deep(2) + *(const int *)a - *(const int *)b;
}

static void *thread(void *n)
{
	return (void *)deep((long)n);
}

static void handler(int number)
{
	bottom = trap;
	deep(number == SIGUSR2 ? 1 : 4);
}

static void raises(int number)
{
	if (number == SIGUSR1)
		raise(SIGUSR2);
}

static long faults(long n)
{
	return *(volatile long *)(n + 8);
}

static void on(int number, void (*f)(int), int flags)
{
	struct sigaction a;
	memset(&a, 0, sizeof a);
	a.sa_handler = f;
	a.sa_flags = flags;
	sigaction(number, &a, 0);
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
	if (!strcmp(way, "moments")) {
		bottom = moments;
		return (int)deep(9);
	}
	if (!strcmp(way, "realigned"))
		return (int)realigned(100);
	if (!strcmp(way, "noreturn"))
		dies();
	if (!strcmp(way, "callback")) {
		int a[] = {3, 1, 2};
		qsort(a, 3, sizeof a[0], compare);
	}
	if (!strcmp(way, "thread")) {
		pthread_t t;
		pthread_create(&t, 0, thread, (void *)5);
		pthread_join(t, 0);
	}
	if (!strcmp(way, "altstack")) {
		other_stack();
		on(SIGUSR1, handler, SA_ONSTACK);
		raise(SIGUSR1);
	}
	if (!strcmp(way, "nested")) {
		other_stack();
		on(SIGUSR1, raises, SA_ONSTACK);
		on(SIGUSR2, handler, 0);
		raise(SIGUSR1);
	}
	if (!strcmp(way, "fault")) {
		on(SIGSEGV, handler, 0);
		bottom = faults;
		return (int)deep(6);
	}
	if (!strcmp(way, "wild")) {
		on(SIGSEGV, handler, 0);
		bottom = 0;
		return (int)deep(1);
	}
	if (!strcmp(way, "bare"))
		return (int)first(deep, 3);
	if (!strcmp(way, "caught"))
		return (int)first(caught, 3);
	return 1;
}
