// Runs work of a module with patchpoints, and ends by a fault in the callee of one of its calls:
//
//	crosspatch TRUTH ordinary | constant | symbol
//	crosspatch TRUTH near | register | short PLACE
//
// The first three are the calls that the compiler wrote: the call before the first patchpoint, that of a patchpoint whose
// target is a number, and that of one whose target is a symbol. The others are written into the region of a patchpoint
// without a target, PLACE bytes after its start. The return address is written to the file TRUTH.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

uint64_t work(uint64_t n, uint64_t m);
extern const uint8_t *const maps; // the stack map

static const char *truth;
static const void *wanted; // the last call starts here, or before
static const void *until;

static void arrived(const void *pc) {
	if (pc <= wanted || pc > until)
		return;
	FILE *f = fopen(truth, "w");
	fprintf(f, "%p\n", pc);
	fclose(f);
	*(volatile char *)16 = 0; // a fault: abort has no CFI on riscv64
}

// At the address that the module has for it.
__attribute__((section(".stop"))) void stop(void) { arrived(__builtin_return_address(0)); }

// Within the range of a short call.
void near(void) { arrived(__builtin_return_address(0)); }

static int in_ordinary;

void ordinary(void) {
	if (!in_ordinary)
		return;
	until = (const void *)-1;
	arrived(__builtin_return_address(0));
}

#ifdef __powerpc64__
#if _CALL_ELF == 2
static const void *code(void (*f)(void)) { return (const void *)f; }
#else
void *descriptor[3] __attribute__((section(".descriptor"))) = {(void *)1}; // where the module has it
static const void *code(void (*f)(void)) { return *(const void **)f; }
#endif
#else
static const void *code(void (*f)(void)) { return (const void *)f; }
#endif

#define REGION 64 // bytes, of each patchpoint

// The start of the region of the record with an id, by the stack map (StackMaps, "Stack Map Format").
static uint8_t *region(uint64_t id) {
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
				return (uint8_t *)code((void (*)(void))entry) + offset;
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

static uint8_t *put(uint8_t *at, uint64_t word, int size) {
	for (int i = 0; i < size; i++)
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
		at[i] = word >> 8 * (size - 1 - i);
#else
		at[i] = word >> 8 * i;
#endif
	return at + size;
}

// Fills a region with the shortest nops, so that calls may be written at any instruction.
static void clear(uint8_t *at) {
#if defined __powerpc64__
	for (int i = 0; i < REGION; i += 4)
		put(at + i, 0x60000000, 4);
#elif defined __aarch64__
	for (int i = 0; i < REGION; i += 4)
		put(at + i, 0xd503201f, 4);
#elif defined __s390x__
	for (int i = 0; i < REGION; i += 2)
		put(at + i, 0x0707, 2);
#elif defined __riscv
	for (int i = 0; i < REGION; i += 2)
		put(at + i, 0x0001, 2);
#endif
}

// Writes a call of some kind and returns the address after it.
static uint8_t *call(uint8_t *at, const char *kind) {
	uint64_t to = (uint64_t)code(near);
	int64_t by = to - (uint64_t)at;
#if defined __powerpc64__
	if (!strcmp(kind, "near")) {
		if (*(uint32_t *)to >> 16 == 0x3c4c) // it begins with the code that computes r2 from r12
			by += 8;
		return put(at, 0x48000001 | (by & 0x3fffffc), 4); // bl
	}
	at = put(at, 0x3d800000 | to >> 16, 4);      // lis r12
	at = put(at, 0x618c0000 | (to & 0xffff), 4); // ori r12,r12
	at = put(at, 0x7d8903a6, 4);                 // mtctr r12
	return put(at, 0x4e800421, 4);               // bctrl
#elif defined __aarch64__
	if (!strcmp(kind, "near"))
		return put(at, 0x94000000 | (by >> 2 & 0x3ffffff), 4); // bl
	at = put(at, 0xd2800010 | (to & 0xffff) << 5, 4);         // movz x16
	at = put(at, 0xf2a00010 | (to >> 16 & 0xffff) << 5, 4);   // movk x16, lsl 16
	return put(at, 0xd63f0200, 4);                            // blr x16
#elif defined __s390x__
	if (!strcmp(kind, "near"))
		return put(put(at, 0xc0e5, 2), (uint32_t)(by / 2), 4); // brasl %r14
	at = put(put(at, 0xc010, 2), (uint32_t)(by / 2), 4);       // larl %r1
	return put(at, 0x0de1, 2);                                 // basr %r14,%r1
#elif defined __riscv
	if (!strcmp(kind, "near"))
		return put(at, 0xef | (by >> 20 & 1) << 31 | (by >> 1 & 0x3ff) << 21 | (by >> 11 & 1) << 20 | (by >> 12 & 0xff) << 12, 4); // jal
	at = put(at, 0x337 | ((to + 0x800) & 0xfffff000), 4); // lui t1
	at = put(at, 0x30313 | (to & 0xfff) << 20, 4);        // addi t1,t1
	if (!strcmp(kind, "short"))
		return put(at, 0x9302, 2); // c.jalr t1
	return put(at, 0x300e7, 4);    // jalr ra,t1
#endif
}

int main(int argc, char **argv) {
	truth = argv[1];
	const char *way = argv[2];
#if defined __powerpc64__ && _CALL_ELF != 2
	memcpy(descriptor, (void *)stop, sizeof descriptor);
#endif
	if (!strcmp(way, "ordinary")) {
		in_ordinary = 1;
	} else {
		uint64_t id = !strcmp(way, "constant") ? 11 : !strcmp(way, "symbol") ? 12 : 13;
		uint8_t *start = region(id);
		wanted = start;
		until = start + REGION;
		if (argc > 3) {
			uintptr_t page = (uintptr_t)start & -sysconf(_SC_PAGESIZE);
			if (mprotect((void *)page, (uintptr_t)until - page, PROT_READ | PROT_WRITE | PROT_EXEC))
				abort();
			clear(start);
			if ((const void *)call(start + atoi(argv[3]), way) > until)
				return 2; // it is no longer a region of that size
			__builtin___clear_cache((char *)start, (char *)until);
		}
	}
	work(40, 2);
	return 0;
}
