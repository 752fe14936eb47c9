// The code after the stackmap of @f (f.ll) is patched in one form before f reaches it. The patch leads to handler, which aborts, or waits if WAITS is
// defined. A _ in the name of the form is a space.
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

long f(long *, long), g(long *, long);

static uint32_t *site;
static const char *form;

__attribute__((noinline, used)) void handler(void)
{
#ifdef WAITS
	for (;;)
		pause();
#endif
	signal(SIGABRT, SIG_DFL);
	abort();
}

static void onsignal(int number)
{
	(void)number;
	handler();
}

void stub_cfi(void), stub_nocfi(void), stub_saves(void);
__asm__(".text\n"
	".globl stub_cfi\n.type stub_cfi, %function\nstub_cfi:\n.cfi_startproc\n bl handler\n brk #0\n.cfi_endproc\n.size stub_cfi, .-stub_cfi\n"
	".globl stub_nocfi\n.type stub_nocfi, %function\nstub_nocfi:\n stp x0, x1, [sp, #-16]!\n bl handler\n brk #0\n.size stub_nocfi, .-stub_nocfi\n"
	".globl stub_saves\n.type stub_saves, %function\nstub_saves:\n stp x29, x30, [sp, #-32]!\n str x0, [sp, #16]\n bl handler\n brk #0\n.size stub_saves, .-stub_saves\n");

static void put(int at, uint32_t op, void (*to)(void))
{
	if (to)
		op |= (uint32_t)(((intptr_t)to - (intptr_t)(site + at)) >> 2) & 0x3ffffff;
	site[at] = op;
	__builtin___clear_cache((char *)(site + at), (char *)(site + at + 1));
}

void runtime(long y)
{
	(void)y;
	enum { bl = 0x94000000, b = 0x14000000, nop = 0xd503201f, brk = 0xd4200000 };
	site = __builtin_return_address(0);
	mprotect((void *)((uintptr_t)site & ~0xffful), 0x2000, PROT_READ | PROT_WRITE | PROT_EXEC);
	if (!strcmp(form, "bl"))
		put(0, bl, handler);
	if (!strcmp(form, "nop bl"))
		put(0, nop, NULL), put(1, bl, handler);
	if (!strcmp(form, "push bl")) /* str x0, [sp, #-16]! */
		put(0, 0xf81f0fe0, NULL), put(1, bl, handler);
	if (!strcmp(form, "bl stub"))
		put(0, bl, stub_saves);
	if (!strcmp(form, "b cfi"))
		put(0, b, stub_cfi);
	if (!strcmp(form, "b nocfi"))
		put(0, b, stub_nocfi);
	if (!strcmp(form, "bl cfi"))
		put(0, bl, stub_cfi);
	if (!strcmp(form, "bl nocfi"))
		put(0, bl, stub_nocfi);
	if (!strcmp(form, "blr cfi")) {
		uintptr_t to = (uintptr_t)stub_cfi;
		put(0, 0xd2800000 | (to & 0xffff) << 5 | 16, NULL);
		put(1, 0xf2a00000 | (to >> 16 & 0xffff) << 5 | 16, NULL);
		put(2, 0xd63f0000 | 16 << 5, NULL);
	}
	if (!strcmp(form, "shared")) { /* the code of g is that of f */
		uint32_t *other = site + ((uint32_t *)g - (uint32_t *)f);
		put(0, b, stub_nocfi);
		put((int)(other - site), b, stub_nocfi);
	}
	if (!strcmp(form, "brk"))
		put(0, nop, NULL), put(1, brk, NULL);
	if (!strcmp(form, "udf"))
		put(0, 0, NULL);
}

int main(int count, char **arguments)
{
	if (count < 2)
		return 2;
	for (char *c = arguments[1]; *c; c++)
		if (*c == '_')
			*c = ' ';
	form = arguments[1];
	signal(SIGTRAP, onsignal);
	signal(SIGILL, onsignal);
	if (!strcmp(form, "call saves"))
		stub_saves();
	if (!strcmp(form, "call nocfi"))
		stub_nocfi();
	if (!strcmp(form, "call cfi"))
		stub_cfi();
	long (*volatile indirect)(long *, long) = f; /* the call does not name f */
	long m = 1000;
	printf("%ld\n", count > 2 ? indirect(&m, 7) : f(&m, 7));
	return 0;
}
