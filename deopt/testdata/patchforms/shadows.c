// Overwrites the shadow of record 77 of f (shadows.ll) in one of many forms, prints the values of f, and pauses in the code that
// the patch leads to. With two arguments the shadow of g leads to a stub, which f or another caller reaches.
//
//	gcc shadows.c shadows.o; FORM, or shared FORM
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

long f(long *p, long b), g(long *p, long b);

static const char *form;
static int shared, second;
static jmp_buf back;
static uint8_t *at; // the start of the shadow
static uint8_t altstack[65536] __attribute__((aligned(16), used));
void *saved_sp;
long zero;

static void ready(void) {
	printf("ready\n");
	fflush(stdout);
	for (;;)
		pause();
}

__attribute__((noinline, used)) void handler(void) {
	if (shared && !second)
		longjmp(back, 1);
	ready();
	__asm__ volatile("");
}

// Each stub reaches handler, or waits itself. With FN it has no call frame information.
#define FN(name, code) \
	void name(void); \
	__asm__(".globl " #name "\n.type " #name ",@function\n" #name ":\n" code "\nud2\n.size " #name ",.-" #name "\n")
#define CFI(name, code) FN(name, ".cfi_startproc\n" code "\nud2\n.cfi_endproc")

CFI(cfi, "call handler");
CFI(cfi_push, "push $77\n.cfi_adjust_cfa_offset 8\ncall handler");
CFI(cfi_frame, "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset 6,-16\nmov %rsp,%rbp\n.cfi_def_cfa_register 6\nsub $64,%rsp\ncall handler");
CFI(cfi_return, "nop\nsub $8,%rsp\n.cfi_adjust_cfa_offset 8\ncall handler");
CFI(cfi_base, "nop\n.cfi_undefined rip\nsub $8,%rsp\ncall handler");
FN(bare_return, "sub $8,%rsp; push %rax; push %rax; call handler");
FN(pushregs, "push %rax; push %rcx; push %rdx; push %rbx; push %rbp; push %rsi; push %rdi; push %r12; push %r14; push %r15; mov %rsp,%rdi; call handler");
FN(common, "push $77; jmp 1f; .skip 64,0xcc; 1: push %rdi; push %rsi; call handler");
FN(switches, "mov %rsp,saved_sp(%rip); lea altstack_end(%rip),%rsp; push saved_sp(%rip); call handler");
FN(frame, "push %rbp; mov %rsp,%rbp; sub $64,%rsp; and $-16,%rsp; call handler");
FN(pushret, "push $0; call 1f; ud2; 1: add $8,%rsp; call handler");
FN(aligns, "mov %rsp,%rax; and $-64,%rsp; push %rax; push %rax; call handler");
FN(pushf, "pushf; push %rax; call handler");
FN(movrbx, "mov $77,%ebx; call handler");
FN(saverbx, "push %rbx; push %r14; mov $77,%ebx; mov %rsp,%r14; call handler");
FN(getpc, "call 1f; 1: pop %rax; push %rax; call handler");
FN(branches, "cmpq $0,zero(%rip); je 1f; push %rax; 1: push %rbx; mov $1,%ebx; call handler");
FN(loops, "mov $4,%ecx; 1: push %rcx; dec %ecx; jnz 1b; call handler");
FN(returns, "ret");
FN(callsfirst, "push %rdi; call returns; call handler");
FN(tail, "push %rdi; push %rsi; call handler");
FN(zeroid, "push $0; jmp tail");
FN(popsrbx, "push %rbx; pop %rax; mov $77,%ebx; call handler");
FN(callsdeep, "push %rdi; call returns; sub $24,%rsp; call handler");
FN(stores, "movq $5,-8(%rsp); movq $6,(%rsp); call handler");
FN(slotthunk, "jmp *slot(%rip)");
void *slot = pushregs, *slotcfi = cfi;
CFI(cfithunk, "jmp *slotcfi(%rip)");
__asm__(".set altstack_end, altstack+65536");

static void trapped(int signal) {
	(void)signal;
	ready();
}

static int writes(uint8_t *to, const void *b, int n) {
	mprotect((void *)((uintptr_t)to & ~4095ul), 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
	memcpy(to, b, n);
	return n;
}

static int rel(int n, int op, void (*to)(void)) { // a call or jump at that offset, returns where it ends
	uint8_t b[5] = {op};
	int32_t by = (uintptr_t)to - (uintptr_t)(at + n + 5);
	memcpy(b + 1, &by, 4);
	return n + writes(at + n, b, 5);
}

static int bytes(int n, const char *code, int length) { return n + writes(at + n, code, length); }
#define BYTES(n, code) bytes(n, code, sizeof(code) - 1)

static int trap(int signal_, int n, const char *code, int length) {
	signal(signal_, trapped);
	return bytes(n, code, length);
}

static const struct { const char *name; void (*stub)(void); } jumps[] = {
	{"cfi", cfi}, {"cfi_push", cfi_push}, {"cfi_frame", cfi_frame}, {"pushregs", pushregs}, {"common", common}, {"switches", switches},
	{"frame", frame}, {"pushret", pushret}, {"aligns", aligns}, {"pushf", pushf}, {"movrbx", movrbx}, {"saverbx", saverbx}, {"getpc", getpc},
	{"branches", branches}, {"loops", loops}, {"callsfirst", callsfirst}, {"stores", stores}, {"slotthunk", slotthunk}, {"cfithunk", cfithunk},
	{"handler", handler}, {"popsrbx", popsrbx}, {"callsdeep", callsdeep},
};

static void patch(void **ret) {
	for (unsigned n = 0; n < sizeof jumps / sizeof *jumps; n++)
		if (!strcmp(form, jumps[n].name))
			rel(0, 0xe9, jumps[n].stub);
#define IF(name) if (!strcmp(form, name))
	IF("call") rel(0, 0xe8, handler);
	IF("callthunk") rel(0, 0xe8, slotthunk);
	IF("pushcall") rel(BYTES(0, "\x6a\x4d"), 0xe8, handler);
	IF("subcall") rel(BYTES(0, "\x48\x83\xec\x10"), 0xe8, handler);
	IF("pushjmp") rel(BYTES(0, "\x6a\x4d"), 0xe9, pushregs);
	IF("pushjmpcfi") rel(BYTES(0, "\x6a\x4d"), 0xe9, cfi);
	IF("movjmp") rel(BYTES(0, "\x41\xbb\x4d\x00\x00\x00"), 0xe9, pushregs);
	IF("shortjmp") rel(BYTES(0, "\xeb\x04\xcc\xcc\xcc\xcc"), 0xe8, handler);
	IF("jcc") {
		int n = BYTES(0, "\x31\xc0\x0f"); // xor %eax,%eax; je
		rel(n, 0x84, pushregs);
	}
	IF("jmpslot") {
		int32_t by = (uintptr_t)&slot - (uintptr_t)(at + 6);
		BYTES(0, "\xff\x25");
		writes(at + 2, &by, 4);
	}
	IF("data") rel(BYTES(0, "\xeb\x08\x48\xb8\x48\xb8\x48\xb8\x48\xb8"), 0xe8, handler); // an instruction begins after the skipped bytes
	IF("stale") {
		ret[1] = (uint8_t *)cfi + 5; // after its call of handler
		rel(0, 0xe9, handler);
	}
	IF("pushid") rel(BYTES(0, "\x6a\x4d"), 0xe9, pushregs);
	IF("int3") trap(SIGTRAP, 0, "\xcc", 1);
	IF("int3late") trap(SIGTRAP, 0, "\x90\x90\x90\x90\xcc", 5);
	IF("ud2late") trap(SIGILL, 0, "\x90\x90\x90\x90\x0f\x0b", 6);
	IF("int3dies") BYTES(0, "\xcc");
	IF("ud2dies") BYTES(0, "\x0f\x0b");
	IF("hltdies") BYTES(0, "\xf4");
	IF("returned") *ret = (uint8_t *)cfi_return;
	IF("returneddeclared") *ret = (uint8_t *)cfi_base + 1;
	IF("returnedbare") *ret = (uint8_t *)bare_return;
	IF("returnedbase") {
		*ret = (uint8_t *)cfi_base + 1;
		ready();
	}
	IF("returnedwait") {
		*ret = pushregs;
		ready();
	}
	IF("restored") {
		uint8_t was[16];
		memcpy(was, at, 16);
		rel(0, 0xe8, handler);
		writes(at, was, 16);
		ready();
	}
}

void runtime(long which) {
	void **frame = __builtin_frame_address(0);
	at = __builtin_return_address(0);
	if (shared && which == 2 && !strcmp(form, "pushid"))
		rel(BYTES(0, "\x6a\x4e"), 0xe9, pushregs);
	else if (shared && which == 2)
		rel(0, 0xe9, !strcmp(form, "callswitches") ? switches : pushregs);
	else if (!strcmp(form, "native"))
		pushregs();
	else
		patch(frame + 1);
}

static __attribute__((noinline)) long leaf(long x) {
	volatile long y = x;
	pushregs();
	return y;
}

int main(int argc, char **argv) {
	long m = 1000;
	long (*volatile call)(long *, long) = g;
	form = argv[argc - 1];
	shared = argc > 2;
	printf("p=%#lx x=21 b=7 y=107\n", (long)&m);
	fflush(stdout);
	if (!shared)
		return f(&m, 7);
	if (!setjmp(back))
		call(&m, 9);
	second = 1;
	if (!strcmp(form, "main"))
		pushregs();
	if (!strcmp(form, "callswitches"))
		switches();
	if (!strcmp(form, "zeroid"))
		zeroid();
	if (!strcmp(form, "leaf"))
		leaf(3);
	call = f;
	return call(&m, 7);
}
