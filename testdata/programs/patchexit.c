// A runtime that overwrites a site of a function of patchexit.ll with a call to itself, which is where the function's frame is
// looked for.
//
//	PROGRAM FUNCTION WAY [TIMES [wait]]
//
// calls FUNCTION (shadow, sled, leaf) and prints its result and the stored number: "shadow 1234 5678". WAY selects the action at its site: none, the site is
// unchanged; pause, the runtime prints "ready" and waits, with all registers saved as its CFI describes; bare, the same in C, which does not save caller-saved
// registers; stub, as pause, but the site has a jump to a stub that calls; leave, the runtime computes the function's result and store, and returns to the
// function's caller. TIMES is the number of calls of the function, with other arguments each time; with wait the program prints "ready" before the first call,
// and waits for SIGUSR1.
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef int64_t function(int64_t n, int64_t m);

static const char *called;
static int64_t *seen, arg_n, arg_m;

static int64_t step(void) { return 3; }

// The function's result, and the number that it stores.
static int64_t twin(int64_t n, int64_t m, int64_t *last) {
	int64_t acc = m, sign = strcmp(called, "sled") ? 1 : -1;
	for (int64_t i = 0; i < n; i++)
		acc += sign * i * step();
	*last = acc;
	return acc + sign * m;
}

void bare(void) {
	printf("ready\n");
	fflush(stdout);
	pause();
}

// Returns the function's result to its caller, as the function would.
int64_t leave(void) {
	int64_t last, r = twin(arg_n, arg_m, &last);
	*seen = last;
	return r;
}

// Functions with stackmaps have a frame pointer, which is unchanged when they reach this code. Their caller, call, restores the callee-saved registers.
void paused(void), left(void);
int64_t call(function *f, int64_t n, int64_t m);
__asm__(".text\n"
	".globl paused\n.type paused,@function\npaused:\n.cfi_startproc\n"
	"push %rax\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %rax, 0\n"
	"push %rcx\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %rcx, 0\n"
	"push %rdx\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %rdx, 0\n"
	"push %rsi\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %rsi, 0\n"
	"push %rdi\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %rdi, 0\n"
	"push %r8\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %r8, 0\n"
	"push %r9\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %r9, 0\n"
	"push %r10\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %r10, 0\n"
	"push %r12\n.cfi_adjust_cfa_offset 8\n"
	"mov %rsp, %r12\n.cfi_def_cfa_register %r12\n.cfi_offset %r12, -80\n"
	"and $-16, %rsp\n"
	"call bare@PLT\n"
	"ud2\n.cfi_endproc\n.size paused,.-paused\n"

	".globl left\n.type left,@function\nleft:\n.cfi_startproc\n"
	"and $-16, %rsp\n"
	"call leave@PLT\n"
	"lea 8(%rbp), %rsp\n"
	"mov (%rbp), %rbp\n"
	"ret\n.cfi_endproc\n.size left,.-left\n"

	".globl call\n.type call,@function\ncall:\n.cfi_startproc\n"
	"push %rbp\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %rbp, 0\n"
	"mov %rsp, %rbp\n.cfi_def_cfa_register %rbp\n"
	"push %rbx\n.cfi_rel_offset %rbx, -8\n"
	"push %r12\n.cfi_rel_offset %r12, -16\n"
	"push %r13\n.cfi_rel_offset %r13, -24\n"
	"push %r14\n.cfi_rel_offset %r14, -32\n"
	"push %r15\n.cfi_rel_offset %r15, -40\n"
	"sub $8, %rsp\n"
	"mov %rdi, %rax\nmov %rsi, %rdi\nmov %rdx, %rsi\n"
	"call *%rax\n"
	"mov -8(%rbp), %rbx\nmov -16(%rbp), %r12\nmov -24(%rbp), %r13\nmov -32(%rbp), %r14\nmov -40(%rbp), %r15\n"
	"leave\n.cfi_def_cfa %rsp, 8\n.cfi_restore %rbp\n"
	"ret\n.cfi_endproc\n.size call,.-call\n"
	".section .note.GNU-stack,\"\",@progbits\n.text\n");

// The place of the record with an id, by the stack map (StackMaps, "Stack Map Format").
static uint8_t *place(const uint8_t *maps, uint64_t id) {
	uint32_t functions, constants;
	memcpy(&functions, maps + 4, 4);
	memcpy(&constants, maps + 8, 4);
	const uint8_t *f = maps + 16, *r = f + 24 * functions + 8 * constants;
	for (; functions > 0; functions--, f += 24) {
		uint64_t entry, records;
		memcpy(&entry, f, 8);
		memcpy(&records, f + 16, 8);
		for (; records > 0; records--) {
			uint64_t this;
			uint32_t offset;
			uint16_t n;
			memcpy(&this, r, 8);
			memcpy(&offset, r + 8, 4);
			if (this == id)
				return (uint8_t *)entry + offset;
			memcpy(&n, r + 14, 2);
			r += 16 + 12 * n;
			r = (const uint8_t *)(((uintptr_t)r + 7) & -8);
			memcpy(&n, r + 2, 2);
			r += 4 + 4 * n;
			r = (const uint8_t *)(((uintptr_t)r + 7) & -8);
		}
	}
	abort();
}

// A stub in its own page, which calls and never returns.
static uint8_t *stub(void (*to)(void)) {
	uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(page, "\x49\xbb", 2); // movabs $to,%r11
	memcpy(page + 2, &to, 8);
	memcpy(page + 10, "\x41\xff\xd3\x0f\x0b", 5); // call *%r11; ud2
	if (mprotect(page, 4096, PROT_READ | PROT_EXEC))
		abort();
	return page;
}

// Writes a call into a site, with nops behind it, or a jump to a stub.
static void patch(uint8_t *at, void (*to)(void), const uint8_t *by_stub) {
	uint8_t *page = (uint8_t *)((uintptr_t)at & -4096);
	if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC))
		mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
	int64_t by = (const uint8_t *)to - (at + 5);
	memset(at, 0x90, 16);
	if (by_stub) {
		memcpy(at, "\xff\x25\x00\x00\x00\x00", 6); // jmp *0(%rip)
		memcpy(at + 6, &by_stub, 8);
	} else if (by == (int32_t)by) {
		int32_t near = by;
		at[0] = 0xe8; // call
		memcpy(at + 1, &near, 4);
	} else {
		memcpy(at, "\x49\xbb", 2); // movabs $to,%r11
		memcpy(at + 2, &to, 8);
		memcpy(at + 10, "\x41\xff\xd3", 3); // call *%r11
	}
	if (mprotect(page, 8192, PROT_READ | PROT_EXEC))
		mprotect(page, 4096, PROT_READ | PROT_EXEC);
}

static void go(int number) { (void)number; }

int patchexit(const uint8_t *maps, function *shadow, function *sled, function *leaf, int64_t *where, int argc, char **argv) {
	called = argv[1];
	seen = where;
	function *f = !strcmp(called, "shadow") ? shadow : !strcmp(called, "sled") ? sled : leaf;
	uint64_t id = f == shadow ? 31 : f == sled ? 32 : 33;
	const char *way = argv[2];
	if (!strcmp(way, "pause"))
		patch(place(maps, id), paused, NULL);
	else if (!strcmp(way, "stub"))
		patch(place(maps, id), paused, stub(paused));
	else if (!strcmp(way, "bare"))
		patch(place(maps, id), bare, NULL);
	else if (!strcmp(way, "leave"))
		patch(place(maps, id), left, NULL);
	if (argc > 4) {
		signal(SIGUSR1, go);
		bare();
	}
	for (int i = 0; i < (argc > 3 ? atoi(argv[3]) : 1); i++) {
		arg_n = 40 + i, arg_m = 1000 * (i + 1);
		int64_t r = call(f, arg_n, arg_m);
		printf("%s %" PRId64 " %" PRId64 "\n", called, r, *seen);
	}
	return 0;
}
