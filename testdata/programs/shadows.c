// Invalidates compiled code as a runtime does: it writes a call over the shadow of a stackmap, or over the nops of a statepoint, and waits
// in the callee. The callee of each function of shadows.ll calls the next function, each patched in another way, so that all of them are on
// the stack at the end. It prints the expected frame of each on a line; then "ready", and waits in pause.
//
//	gcc -shared -fPIC; linked to shadows.ll, or under lli -dlopen
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef int64_t function(int64_t a, int64_t b);

static function **functions;
static int level;
static uint8_t saved[64], *patched; // of taken_back

__attribute__((force_align_arg_pointer)) void hook(void);

// The name of each function and its patch, in the order of shadows.ll. The number is that of its record; match means that the frame must
// have it.
static const struct {
	const char *name;
	int record, match, bytes;
} cases[] = {
	{"shared_one", 113, 0, 32}, {"shared_two", 114, 0, 32}, // both jump to one stub
	{"region_jump", 304, 1, 24}, {"sled_start", 101, 1, 32}, {"sled_middle", 102, 1, 32}, {"sled_end", 103, 1, 32}, {"sled_register", 104, 1, 32},
	{"sled_memory", 105, 1, 32}, {"sled_jump", 106, 1, 32}, {"sled_jumpreg", 107, 1, 32}, {"epilogue", 108, 1, 32},
	{"epilogue_ran", 109, 1, 32}, {"own", 110, 0, 16}, {"own_over", 111, 1, 16}, {"taken_back", 112, 0, 32},
	{"region_start", 301, 1, 24}, {"region_middle", 302, 1, 24}, {"region_end", 303, 1, 24},
	{"pp_jump", 401, 1, 24}, {"pp_changed", 402, 1, 24},
};

static const uint8_t mark[] = {0x0f, 0x1f, 0x80, 0x01, 0x00, 0xdd, 0x5a}; // nopl 0x5add0001(%rax)

static uint8_t *marked(const void *f) {
	uint8_t *at = memmem(f, 256, mark, sizeof mark);
	if (!at)
		abort();
	return at + sizeof mark;
}

// near returns some bytes of executable memory within 32 bits of distance.
static uint8_t *near(const uint8_t *code) {
	static uint8_t *next, *end;
	if (next + 64 > end) {
		for (uintptr_t at = ((uintptr_t)code & ~0xfffful) - 0x100000; next + 64 > end; at -= 0x10000) {
			void *p = mmap((void *)at, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
			if (p != MAP_FAILED)
				next = p, end = next + 4096;
		}
	}
	return (next += 64) - 64;
}

static int rel32(uint8_t *at, uint8_t op, const uint8_t *to) {
	int32_t by = to - (at + 5);
	at[0] = op;
	memcpy(at + 1, &by, 4);
	return 5;
}

static int movabs(uint8_t *at, const void *to) { // to r11
	at[0] = 0x49, at[1] = 0xbb;
	memcpy(at + 2, &to, 8);
	return 10;
}

// thunk jumps to the hook.
static uint8_t *thunk(const uint8_t *code) {
	uint8_t *t = near(code);
	int n = movabs(t, hook);
	memcpy(t + n, "\x41\xff\xe3", 3); // jmp *%r11
	return t;
}

// stub calls the hook, with some on the stack.
static uint8_t *stub(const uint8_t *code, const char *before, int length, uint8_t **returns) {
	uint8_t *t = near(code);
	memcpy(t, before, length);
	int n = length + movabs(t + length, hook);
	memcpy(t + n, "\x41\xff\xd3\x0f\x0b", 5); // call *%r11; ud2
	*returns = t + n + 3;
	return t;
}

static void open_(uint8_t *at, int how) {
	uintptr_t page = (uintptr_t)at & ~0xffful;
	if (mprotect((void *)page, 8192, how) && mprotect((void *)page, 4096, how))
		abort();
}

// nops finds the nops after the spills.
static uint8_t *nops(uint8_t *at) {
	while (memcmp(at, "\x66\x2e\x0f\x1f", 4) && memcmp(at, "\x66\x66\x2e\x0f", 4) && memcmp(at, "\x2e\x66\x0f\x1f", 4))
		at++;
	return at;
}

// patch writes over the code at a mark and returns the return address of the call.
static uint8_t *patch(const char *name, uint8_t *at) {
	uint8_t *returns;
	open_(at, PROT_READ | PROT_WRITE | PROT_EXEC);
	if (!strcmp(name, "own")) {
		returns = at + 16;
	} else if (!strcmp(name, "sled_middle")) {
		returns = at + 10 + rel32(at + 10, 0xe8, thunk(at));
	} else if (!strcmp(name, "sled_end")) {
		memset(at + 20, 0x90, 7);
		returns = at + 27 + rel32(at + 27, 0xe8, thunk(at));
	} else if (!strcmp(name, "sled_register")) {
		int n = movabs(at, hook);
		memcpy(at + n, "\x41\xff\xd3", 3); // call *%r11
		returns = at + n + 3;
	} else if (!strcmp(name, "sled_memory")) {
		uint8_t *word = near(at);
		void *to = hook;
		memcpy(word, &to, 8);
		int32_t by = word - (at + 6);
		memcpy(at, "\xff\x15", 2); // call *by(%rip)
		memcpy(at + 2, &by, 4);
		returns = at + 6;
	} else if (!strcmp(name, "sled_jump")) {
		rel32(at, 0xe9, stub(at, "", 0, &returns));
	} else if (!strncmp(name, "shared", 6)) {
		static uint8_t *one, *back;
		if (!one)
			one = stub(at, "", 0, &back);
		rel32(at, 0xe9, one);
		returns = back;
	} else if (!strcmp(name, "sled_jumpreg")) {
		int n = movabs(at, stub(at, "\x50\x53\x31\xdb", 4, &returns)); // push %rax; push %rbx; xor %ebx,%ebx
		memcpy(at + n, "\x41\xff\xe3", 3); // jmp *%r11
	} else if (!strcmp(name, "epilogue_ran")) {
		while (*at != 0xc3) // up to its return
			at++;
		returns = at + rel32(at, 0xe8, thunk(at));
	} else if (!strcmp(name, "own_over")) { // which may begin before, with its address
		memset(at, 0x90, 11);
		returns = at + 11 + rel32(at + 11, 0xe8, thunk(at));
	} else if (!strcmp(name, "region_jump") || !strcmp(name, "pp_jump")) {
		at = nops(at);
		rel32(at, 0xe9, stub(at, "", 0, &returns));
	} else if (!strcmp(name, "pp_changed")) {
		void *to = hook;
		memset(at, 0x90, 24);
		memcpy(at, "\x48\xbb", 2); // movabs to rbx, which the record has a value in
		memcpy(at + 2, &to, 8);
		memcpy(at + 10, "\xff\xd3", 2); // call *%rbx
		returns = at + 12;
	} else if (!strncmp(name, "region", 6)) {
		at = nops(at);
		int n = name[7] == 's' ? 0 : name[7] == 'm' ? 8 : 24 - 5;
		memset(at, 0x90, n);
		returns = at + n + rel32(at + n, 0xe8, thunk(at));
		memset(returns, 0x90, 24 - 5 - n);
	} else {
		memcpy(saved, at, sizeof saved);
		patched = at;
		returns = at + rel32(at, 0xe8, thunk(at));
	}
	open_(at, PROT_READ | PROT_EXEC);
	return returns;
}

static void next(void) {
	int n = level++;
	if (n == sizeof cases / sizeof *cases || !functions[n]) {
		puts("ready");
		fflush(stdout);
		for (;;)
			pause();
	}
	int64_t a = 1000 + 100 * n, b = 7;
	uint8_t *at = marked(functions[n]), *returns = patch(cases[n].name, at);
	printf("case %s record %d at %#lx returns %#lx match %d sum %ld product %ld\n", cases[n].name, cases[n].record,
	       (unsigned long)at, (unsigned long)returns, cases[n].match, a + b, a * b);
	fflush(stdout);
	functions[n](a, b);
	abort();
}

void hook(void) {
	if (patched && !strcmp(cases[level - 1].name, "taken_back")) {
		open_(patched, PROT_READ | PROT_WRITE | PROT_EXEC);
		memcpy(patched, saved, 32);
		open_(patched, PROT_READ | PROT_EXEC);
	}
	next();
}

void nothing(void) { next(); }

int shadows_run(function **all) {
	functions = all;
	next();
	return 0;
}
