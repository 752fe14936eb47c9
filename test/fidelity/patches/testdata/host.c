// The host of the random programs of fidelity/patches. It reads moments from its standard input. For each moment it writes bytes over the code of
// the functions of the module, and then takes actions, each inside the one before: it calls a function, which reaches its patched site; the patch
// leads to handler or to a signal handler, and so back to event, which takes the next action. The last action stops. An x86-64 process prints a
// line there and waits for one. On arm64 each moment has a child, which dies there of SIGABRT, so that QEMU writes a core.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUT __attribute__((noinline, used))

enum { entrySize = 256, entries = 200, maxActions = 64, maxWrites = 64, stackRoom = 1 << 16 };

// The log: an entry of each active function, which begins with its number. The newest is at logtop.
uint64_t log_[entries * entrySize / 8];
char *logtop = (char *)log_;

// Numbers of the functions of the host. Those of the module begin at 0.
enum { atEvent = 1000, atHandler, atSignal, atNative };

static void enter(uint64_t number)
{
	logtop += entrySize;
	*(uint64_t *)logtop = number;
}

static void leave(void) { logtop -= entrySize; }

struct action {
	char kind; // c: call a function, n: call a stub, o: overwrite the return address and continue, r: return, s: stop
	uint64_t at, argument;
};
static struct action actions[maxActions];
static int next;
static jmp_buf back;
uint64_t zero; // for the stubs
uint64_t lost; // the return address that was overwritten

static OUT void stop(void)
{
#ifdef __x86_64__
	char c;
	if (write(1, "s\n", 2) != 2 || read(0, &c, 1) != 1)
		_exit(3);
	longjmp(back, 1);
#else
	signal(SIGABRT, SIG_DFL);
	abort();
#endif
}

static OUT void native(void (*to)(void))
{
	enter(atNative);
	to();
	leave();
	__asm__ volatile("");
}

OUT void event(void)
{
	enter(atEvent);
	struct action *a = &actions[next++];
	if (a->kind == 'o') {
		void *volatile *frame = __builtin_frame_address(0);
		lost = (uint64_t)frame[1];
		frame[1] = (void *)a->at;
		a = &actions[next++];
	}
	switch (a->kind) {
	case 'c':
		((uint64_t(*)(uint64_t))a->at)(a->argument);
		break;
	case 'n':
		native((void (*)(void))a->at);
		break;
	case 's':
		stop();
		break;
	}
	leave();
	__asm__ volatile("");
}

OUT void handler(void)
{
	enter(atHandler);
	event();
	leave();
	__asm__ volatile("");
}

// noise is a function that changes all caller-saved registers.
OUT uint64_t noise(uint64_t x)
{
	for (volatile int k = 0; k < 3; k++)
		x = x * 31 + k;
	return x;
}

static OUT void onsignal(int number)
{
	enter(atSignal);
	event();
	leave();
	__asm__ volatile("");
	(void)number;
}

static struct {
	uint8_t *at, was[64];
	unsigned length;
} writes[maxWrites];
static int written;

static void overwrite(uint8_t *at, const uint8_t *bytes, unsigned length)
{
	writes[written].at = at;
	writes[written].length = length;
	memcpy(writes[written++].was, at, length);
	memcpy(at, bytes, length);
	__builtin___clear_cache((char *)at, (char *)at + length);
}

static void restore(void)
{
	while (written > 0) {
		written--;
		memcpy(writes[written].at, writes[written].was, writes[written].length);
		__builtin___clear_cache((char *)writes[written].at, (char *)writes[written].at + writes[written].length);
	}
}

static OUT void run(void)
{
	if (!setjmp(back))
		event();
}

static void fail(const char *why)
{
	fprintf(stderr, "%s\n", why);
	exit(2);
}

// line reads a line without the library's buffer, as stop reads.
static int line(char *text, int room)
{
	int n = 0;
	while (n < room - 1 && read(0, text + n, 1) == 1 && text[n] != '\n')
		n++;
	text[n] = 0;
	return n > 0;
}

extern char __executable_start, etext;
static uint8_t signalStack[1 << 18];

int main(int count, char **arguments)
{
	int onStack = count > 1 && !strcmp(arguments[1], "altstack");
	if (onStack) {
		stack_t s = {.ss_sp = signalStack, .ss_size = sizeof signalStack};
		sigaltstack(&s, NULL);
	}
	struct sigaction on = {.sa_handler = onsignal, .sa_flags = SA_NODEFER | (onStack ? SA_ONSTACK : 0)};
	static const int signals[] = {SIGTRAP, SIGILL, SIGSEGV, SIGBUS};
	for (unsigned k = 0; k < sizeof signals / sizeof *signals; k++)
		sigaction(signals[k], &on, NULL);
	uintptr_t from = (uintptr_t)&__executable_start & ~4095ull;
	if (mprotect((void *)from, (((uintptr_t)&etext + 4095) & ~4095ull) - from, PROT_READ | PROT_WRITE | PROT_EXEC))
		fail("mprotect");
	static char text[1024];
	while (line(text, sizeof text)) {
		int patches, steps;
		if (sscanf(text, "m %d %d", &patches, &steps) != 2 || patches > maxWrites || steps > maxActions)
			fail(text);
		for (int k = 0; k < patches; k++) {
			unsigned long at;
			static char hex[256];
			uint8_t bytes[64];
			if (!line(text, sizeof text) || sscanf(text, "w %lx %200s", &at, hex) != 2)
				fail(text);
			unsigned length = strlen(hex) / 2, value;
			for (unsigned b = 0; b < length && sscanf(hex + 2 * b, "%2x", &value) == 1; b++)
				bytes[b] = value;
			overwrite((uint8_t *)at, bytes, length);
		}
		for (int k = 0; k < steps; k++) {
			struct action *a = &actions[k];
			if (!line(text, sizeof text) || sscanf(text, "a %c %lx %lx", &a->kind, &a->at, &a->argument) != 3)
				fail(text);
		}
		next = 0;
		logtop = (char *)log_;
#ifdef __x86_64__
		run();
#else
		pid_t child = fork();
		if (child == 0) {
			run();
			_exit(4);
		}
		int status;
		waitpid(child, &status, 0);
		printf("%d\n", child);
		fflush(stdout);
#endif
		restore();
	}
	return 0;
}
