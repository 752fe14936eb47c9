// A copying collector for list.ll. It collects at each allocation, moves each object to the other of two spaces, and makes the space that it has left
// inaccessible. It finds its roots with a reader of its own for .llvm_stackmaps, and walks the stack by frame pointers.
//
//	list              run list.ll
//	list innermost    the walker has a bug: it visits only the innermost frame that has a record
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct object { struct object *moved; int64_t value; struct object *next; };
struct location { int kind, reg, offset; };

extern const unsigned char *const maps;
extern int64_t program(int64_t n);

enum { space_size = 1 << 20, indirect = 3, rbp = 6, rsp = 7 };
static char *const spaces[] = {(char *)0x100000000000, (char *)0x200000000000};
int in_use;   // the number of a space; not static, so that heap.star finds its address
char *unused; // the free part of that space
static int only_innermost;
static uint64_t **bottom; // the frame of main
static struct root { char **slot; struct object *object; } roots[1000];
static int root_count;

static uint64_t u64(const unsigned char *p) { uint64_t v; memcpy(&v, p, 8); return v; }
static uint32_t u32(const unsigned char *p) { uint32_t v; memcpy(&v, p, 4); return v; }
static uint16_t u16(const unsigned char *p) { uint16_t v; memcpy(&v, p, 2); return v; }

static struct location location_at(const unsigned char *p) { return (struct location){p[0], u16(p + 4), (int)u32(p + 8)}; }

// record returns the locations of the record at a return address, or NULL, and their number.
static const unsigned char *record(uint64_t pc, int *n) {
	const unsigned char *f = maps + 16, *r = f + 24 * u32(maps + 4) + 8 * u32(maps + 8);
	for (uint32_t functions = u32(maps + 4); functions > 0; functions--, f += 24)
		for (uint64_t k = u64(f + 16); k > 0; k--) {
			*n = u16(r + 14);
			if (u64(f) + u32(r + 8) == pc)
				return r + 16;
			r += (16 + 12 * *n + 7) / 8 * 8;
			r += (4 + 4 * u16(r + 2) + 7) / 8 * 8;
		}
	return NULL;
}

// visit_root is called for each pair: with the slot of a pointer, and with that of the object's own address.
__attribute__((noipa)) void visit_root(char **slot, struct object **base) {
	if (*base)
		roots[root_count++] = (struct root){slot, *base};
}

// visit_frame visits the pairs of a frame. They follow three constants and the deopt operands.
static void visit_frame(const unsigned char *l, int n, char *sp, char *fp) {
	for (int k = 3 + location_at(l + 24).offset; k + 1 < n; k += 2) {
		char *slots[2];
		for (int side = 0; side < 2; side++) {
			struct location at = location_at(l + 12 * (k + side));
			if (at.kind != indirect)
				abort(); // all pointers are spilled
			slots[side] = (at.reg == rbp ? fp : sp) + at.offset;
		}
		visit_root((char **)slots[1], (struct object **)slots[0]);
	}
}

static struct object *move(struct object *o) {
	if (!o->moved) {
		memcpy(unused, o, sizeof *o);
		o->moved = (struct object *)unused;
		unused += sizeof *o;
	}
	return o->moved;
}

__attribute__((noinline)) void collect(void) {
	int n;
	root_count = 0;
	for (uint64_t **fp = __builtin_frame_address(0); fp != bottom; fp = (uint64_t **)fp[0]) {
		const unsigned char *l = record((uint64_t)fp[1], &n);
		if (!l)
			continue; // C
		visit_frame(l, n, (char *)(fp + 2), (char *)fp[0]);
		if (only_innermost)
			break;
	}
	char *left = spaces[in_use];
	in_use = !in_use;
	mprotect(spaces[in_use], space_size, PROT_READ | PROT_WRITE);
	struct object *scan = (struct object *)(unused = spaces[in_use]);
	for (struct root *r = roots; r < roots + root_count; r++)
		*r->slot += (char *)move(r->object) - (char *)r->object;
	for (; (char *)scan < unused; scan++)
		if (scan->next)
			scan->next = move(scan->next);
	madvise(left, space_size, MADV_DONTNEED);
	mprotect(left, space_size, PROT_NONE);
}

struct object *gc_alloc(void) {
	collect();
	struct object *o = (struct object *)unused;
	unused += sizeof *o;
	return o;
}

void crashed(int number, siginfo_t *info, void *context) {
	(void)number, (void)context;
	char *heap = spaces[in_use], *left = spaces[!in_use];
	printf("fault at %p, heap %p-%p, from-space %p-%p\n", info->si_addr, (void *)heap, (void *)(heap + space_size), (void *)left, (void *)(left + space_size));
	fflush(stdout);
	_exit(1);
}

int main(int argc, char **argv) {
	only_innermost = argc > 1 && !strcmp(argv[1], "innermost");
	for (int k = 0; k < 2; k++)
		if (mmap(spaces[k], space_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != spaces[k])
			return 2;
	sigaction(SIGSEGV, &(struct sigaction){.sa_sigaction = crashed, .sa_flags = SA_SIGINFO}, NULL);
	unused = spaces[0];
	bottom = __builtin_frame_address(0);
	printf("program returns %ld\n", program(3));
	return 0;
}
