// A collector that moves every object, as described in "Garbage Collection Safepoints in LLVM": it finds the record of
// the call by its return address, and updates each pointer by the move of its base. It prints the moves:
//
//	moved BASE POINTER to BASE POINTER      of each pointer of each pair
//
// collector ROUND: at that collection, after it has moved, it prints "ready" and waits in pause. At its end the program
// prints "result N", of @work.
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const unsigned char *const maps; // the section, whose name is local to the object
extern int64_t work(void *object, int64_t n);

enum { words = 8, objects = 4, spaces = 16 };
static int64_t heap[spaces][objects][words]; // each collection moves to the next space
static int space, round_of_pause;

static uint64_t u64(const unsigned char *p) { uint64_t v; memcpy(&v, p, 8); return v; }
static uint32_t u32(const unsigned char *p) { uint32_t v; memcpy(&v, p, 4); return v; }
static uint16_t u16(const unsigned char *p) { uint16_t v; memcpy(&v, p, 2); return v; }

struct location { int kind, size, reg, value; };

static struct location location_at(const unsigned char *p) {
	return (struct location){p[0], u16(p + 2), u16(p + 4), (int32_t)u32(p + 8)};
}

// record returns the locations of the record at an address, and their number.
static const unsigned char *record(uint64_t pc, int *n) {
	const unsigned char *p = maps;
	uint32_t functions = u32(p + 4), constants = u32(p + 8);
	const unsigned char *f = p + 16, *r = f + 24 * functions + 8 * constants;
	for (; functions > 0; functions--, f += 24)
		for (uint64_t k = u64(f + 16); k > 0; k--) {
			*n = u16(r + 14);
			if (u64(f) + u32(r + 8) == pc)
				return r + 16;
			r += (16 + 12 * *n + 7) / 8 * 8;
			r += (4 + 4 * u16(r + 2) + 7) / 8 * 8;
		}
	abort();
}

static int64_t moved(int64_t base) {
	int64_t first = (int64_t)heap[space - 1];
	if (base < first || base >= first + (int64_t)sizeof heap[0] || (base - first) % (words * 8) != 0)
		abort(); // a base is the start of an object
	return base - first + (int64_t)heap[space];
}

// before is the content of a slot at the start of the collection: several pairs may share a slot.
static char *frame;
static int64_t copy[512];
static int64_t before(int64_t *slot) {
	ptrdiff_t at = (char *)slot - frame;
	if (at < 0 || at >= (ptrdiff_t)sizeof copy)
		abort();
	return copy[at / 8];
}

// update moves the pointers of one pair, which may be several in one location.
static void update(char *sp, struct location base, struct location derived) {
	if (base.kind == 4 && derived.kind == 4)
		return; // null
	if (base.kind != 3 || derived.kind != 3 || base.reg != 7 || derived.reg != 7 || base.size != derived.size)
		abort(); // all is spilled
	for (int k = 0; k < derived.size / 8; k++) {
		int64_t *b = (int64_t *)(sp + base.value) + k, *d = (int64_t *)(sp + derived.value) + k;
		int64_t was = before(b), now = moved(was), pointer = before(d);
		*d = pointer - was + now;
		printf("moved %#lx %#lx to %#lx %#lx\n", was, pointer, now, *d);
	}
}

__attribute__((noinline, optimize("no-omit-frame-pointer"))) void collect(void) {
	char *sp = (char *)__builtin_frame_address(0) + 16;
	int n;
	const unsigned char *l = record((uint64_t)__builtin_return_address(0), &n);
	space++;
	memcpy(heap[space], heap[space - 1], sizeof heap[0]);
	memset(heap[space - 1], 0xdd, sizeof heap[0]);
	for (int k = 0; k < objects; k++)
		if (heap[space][k][0])
			heap[space][k][0] = moved(heap[space][k][0]); // the pointer in each object
	frame = sp;
	memcpy(copy, sp, sizeof copy);
	for (int k = 3 + location_at(l + 24).value; k + 1 < n; k += 2)
		update(sp, location_at(l + 12 * k), location_at(l + 12 * k + 12));
	if (space == round_of_pause) {
		puts("ready");
		pause();
	}
}

static void handler(int number) { (void)number; }

int main(int argc, char **argv) {
	char room[4096]; // above every frame of compiled code
	memset(room, 0, sizeof room);
	if (argc != 2)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGUSR1, handler);
	round_of_pause = atoi(argv[1]);
	int64_t *a = heap[0][0], *b = heap[0][2];
	for (int k = 1; k < words; k++)
		a[k] = 10 * k, b[k] = 1000 * k;
	a[0] = (int64_t)b;
	b[0] = (int64_t)a;
	printf("result %ld\n", work(a, 100) + room[0]);
	return 0;
}
