/* Signals that hit in one place and are handled in another. The arguments pick where the
   signal hits, and what the handler returns to. signals.s has what the compiler would not
   write. Every way ends in a trap. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

extern long early(long), saved(long), set(long), leaf(long), restored(long);
extern void (*const by_rax)(void), (*const by_eax)(void);

static __attribute__((noipa)) long trap(long n)
{
	__asm__ volatile("int3");
	return n;
}

/* Handlers. */
__attribute__((noipa)) void handles(int number)
{
	trap(number);
	__asm__ volatile("" : : "r"(number));
}

__attribute__((noipa)) void traps(int number)
{
	__asm__ volatile("int3" : : "r"(number));
}

__attribute__((noipa)) void again(int number)
{
	if (number == SIGSEGV)
		raise(SIGUSR1);
	else
		trap(number);
	__asm__ volatile("" : : "r"(number));
}

struct kernel_action {
	void (*handler)(int);
	unsigned long flags;
	void (*restorer)(void);
	unsigned long mask;
};

static void on(int number, void (*handler)(int), void (*restorer)(void), unsigned long flags)
{
	struct kernel_action a = {handler, flags | 0x04000000, restorer, 0};
	syscall(SYS_rt_sigaction, number, &a, 0, 8);
}

static __attribute__((noipa)) long calls(long (*f)(long), long n)
{
	return f(n) + 1;
}

int main(int argc, char **argv)
{
	static char space[1 << 16];
	stack_t other = {.ss_sp = space, .ss_size = sizeof space};
	const char *way = argv[1], *to = argv[2], *handler = argv[3];
	void (*restorer)(void) = !strcmp(to, "eax") ? by_eax : by_rax;
	void (*h)(int) = !strcmp(handler, "traps") ? traps : !strcmp(handler, "again") ? again : handles;
	sigaltstack(&other, 0);
	unsigned long flags = strcmp(handler, "other stack") ? 0 : SA_ONSTACK;
	if (!strcmp(to, "libc")) {
		struct sigaction a;
		memset(&a, 0, sizeof a);
		a.sa_handler = h;
		a.sa_flags = flags;
		sigaction(SIGSEGV, &a, 0);
		sigaction(SIGUSR1, &a, 0);
	} else {
		on(SIGSEGV, h, restorer, flags);
		on(SIGUSR1, h, restorer, flags);
	}
	long (*f)(long) = !strcmp(way, "early") ? early : !strcmp(way, "saved") ? saved : !strcmp(way, "set") ? set :
		!strcmp(way, "restored") ? restored : leaf;
	return (int)calls(f, 8);
}
