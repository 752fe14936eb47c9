// A copying collector for the programs of package gcprogram. It finds the pointers of compiled frames with a reader of its own for .llvm_stackmaps, moves
// every object at every collection, and makes the old space inaccessible.
//
//	program [-every N] [-fill] [-log FILE] [-stop N [-step N]] [-rounds N] [-skip ID] [-misread ID:PAIR:DELTA] [-skip-null] [-again] [-pause-at N] [-exit-at N]
//
//	-every N       collect at every N-th safepoint (default 1); 0 never collects
//	-fill          copy between two spaces, and fill the old one with 0xdd bytes; otherwise each collection has a new space, and the old one faults
//	-log FILE      log each frame, each root and each moved object, and what the roots reach
//	-stop N        print "ready" after collection N and wait in pause; with -step M also after N+M, N+2M, ...; a signal SIGUSR1 continues
//	-skip ID       a mutant of the walker: it does not visit the roots of frames whose record has this id
//	-misread ID:PAIR:DELTA    a mutant of the walker: it adds DELTA to the offset of a pair's derived pointer in the record with this id
//	-skip-null     do not visit stack objects that hold null
//	-again         collect twice at a safepoint
//	-pause-at N    print "ready" and wait in pause before visit N, until SIGUSR1
//	-exit-at N     exit before visit N
//
// At its end the program prints "result N", a checksum that depends on no address, and "collections N safepoints N frames N roots N".
//
// An object is a header, four words, and its references. A walk needs no call frame information: the stack map holds the size of each frame, and the
// prologue of each function shows the registers that it pushes. Stubs in assembly save all callee-saved registers where compiled code calls C.
//
// Exit status: 3 if a root is not the start of an object, 4 if the heap is exhausted, 5 if the stack map is not as expected.
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

extern const unsigned char *const gc_maps; // the section, whose name is local to the object of the compiled code

struct object {
	uint64_t header; // magic | number of references; in from-space also the new address of the object
	uint64_t word[4];
	struct object *ref[];
};

extern struct object *program(struct object *a, struct object *b, int64_t depth);

// saved holds what a stub has pushed, and the return address into compiled code.
struct saved { uint64_t pad, r15, r14, r13, r12, rbx, rbp, pc; };

static int every = 1, fill, stop, step, rounds = 1, skip_null, again;
static long pause_at, exit_at;
static long skipped = -1, misread_id = -1;
static int misread_pair, misread_delta;
static FILE *out;
static long collections, safepoints, frames, roots, fuel;

// The heap.

static const uint64_t magic = 0x0b1ec70000000000, space_size = 1 << 19, arena_size = 1ull << 34;
static char *arena, *end; // the arena, and the end of the current space
char *from, *next;        // the current space, and its unused part; heap.star reads these
static uint64_t ids, gap = 12345;

static void die(int status, const char *reason, uint64_t at) {
	printf("%s %#lx in collection %ld\n", reason, at, collections);
	if (out)
		fclose(out);
	fflush(stdout);
	_exit(status);
}

static uint64_t size_of(struct object *o) { return sizeof *o + 8 * (o->header & 0xffffffff); }

// room returns the address of a new object after a gap, so that objects move by different distances.
static void *room(uint64_t size) {
	gap = gap * 6364136223846793005 + 1442695040888963407;
	next += (gap >> 60) * 8;
	if (next + size > end)
		return NULL;
	void *at = next;
	next += size;
	return at;
}

static void open_space(long n) {
	if (fill)
		n %= 2;
	char *at = arena + n * space_size;
	uint64_t size = every ? space_size : arena_size;
	if (at + size > arena + arena_size || mprotect(at, size, PROT_READ | PROT_WRITE) != 0)
		die(4, "no space", (uint64_t)at);
	from = next = at;
	end = at + size;
}

// forward returns the new address of an object, which it copies if no other root has moved it.
static struct object *forward(struct object *o, char *old, char *old_end) {
	if ((char *)o < old || (char *)o >= old_end || (uint64_t)o % 8)
		die(3, "not an object", (uint64_t)o);
	if (o->header >= (uint64_t)arena && o->header < (uint64_t)arena + arena_size)
		return (struct object *)o->header;
	if ((o->header & ~0xffffull) != magic)
		die(3, "not an object", (uint64_t)o);
	struct object *to = room(size_of(o));
	if (!to)
		die(4, "heap exhausted", (uint64_t)o);
	memcpy(to, o, size_of(o));
	if (out)
		fprintf(out, "moved %p %p %lu\n", (void *)o, (void *)to, size_of(o));
	o->header = (uint64_t)to;
	return to;
}

// The stack map.

struct location { int kind, size, reg, value; };
struct record { uint64_t pc, function, frame, id; const unsigned char *at; int n; };
static struct record *records;
static size_t record_count;

static uint64_t u64(const unsigned char *p) { uint64_t v; memcpy(&v, p, 8); return v; }
static uint32_t u32(const unsigned char *p) { uint32_t v; memcpy(&v, p, 4); return v; }
static uint16_t u16(const unsigned char *p) { uint16_t v; memcpy(&v, p, 2); return v; }

static struct location location_at(struct record *r, int k) {
	const unsigned char *p = r->at + 12 * k;
	return (struct location){p[0], u16(p + 2), u16(p + 4), (int32_t)u32(p + 8)};
}

static int by_pc(const void *a, const void *b) {
	uint64_t x = ((struct record *)a)->pc, y = ((struct record *)b)->pc;
	return (x > y) - (x < y);
}

static void read_maps(void) {
	const unsigned char *p = gc_maps;
	uint32_t functions = u32(p + 4), constants = u32(p + 8);
	record_count = u32(p + 12);
	records = calloc(record_count + 1, sizeof *records);
	const unsigned char *f = p + 16, *r = f + 24 * functions + 8 * constants;
	struct record *to = records;
	for (; functions > 0; functions--, f += 24)
		for (uint64_t k = u64(f + 16); k > 0; k--) {
			*to++ = (struct record){u64(f) + u32(r + 8), u64(f), u64(f + 8), u64(r), r + 16, u16(r + 14)};
			r += (16 + 12 * u16(r + 14) + 7) / 8 * 8;
			r += (4 + 4 * u16(r + 2) + 7) / 8 * 8;
		}
	qsort(records, record_count, sizeof *records, by_pc);
}

static struct record *record_of(uint64_t pc) {
	struct record key = {.pc = pc};
	return bsearch(&key, records, record_count, sizeof key, by_pc);
}

// The roots of a collection. Slots may be in several pairs, so all are read before the first is written.

struct pair { void **slot, **base; char *value; struct object *of; long frame; int whole; };
static struct pair pairs[1 << 16];
static int pair_count;
static long frame_number; // of the walk
static int whole;         // the root is a stack object

// visit_root is called with each root that the walker finds: the slot of the pointer, and the slot of the pointer to the start of its object.
__attribute__((noinline)) void visit_root(void **slot, void **base) {
	if (pair_count == sizeof pairs / sizeof *pairs)
		die(5, "too many roots", pair_count);
	pairs[pair_count++] = (struct pair){slot, base, *slot, *base, frame_number, whole};
	roots++;
}

// slot_of returns the address of a location's content; NULL for a constant. reg holds the addresses of the callee-saved registers by their DWARF numbers.
static void **slot_of(struct location l, uint64_t sp, uint64_t **reg) {
	switch (l.kind) {
	case 1:
		if (l.reg < 16 && reg[l.reg])
			return (void **)reg[l.reg];
		break;
	case 2: // a stack object
	case 3:
		if (l.reg == 7)
			return (void **)(sp + l.value);
		if (l.reg < 16 && reg[l.reg])
			return (void **)(*reg[l.reg] + l.value);
		break;
	case 4:
	case 5:
		return NULL;
	}
	die(5, "location of register", l.reg);
	return NULL;
}

static void visit(void **slot, void **base) {
	if (pause_at && roots + 1 == pause_at) {
		puts("ready");
		pause();
	}
	if (exit_at && roots + 1 == exit_at)
		_exit(0);
	visit_root(slot, base);
}

static void visit_frame(struct record *r, uint64_t sp, uint64_t **reg) {
	frames++;
	frame_number++;
	if (out)
		fprintf(out, "frame %#lx %#lx %#lx %lu\n", r->pc, sp, r->function, r->id);
	if ((long)r->id == skipped)
		return;
	int k = 3 + location_at(r, 2).value, pair = 0;
	int misread = (long)r->id == misread_id && k + 2 * misread_pair + 1 < r->n;
	struct location wrong = {0};
	if (misread)
		wrong = location_at(r, k + 2 * misread_pair + 1);
	while (k < r->n) {
		struct location d = location_at(r, k);
		if (d.kind == 2) { // the address of a stack object with one reference
			void **slot = slot_of(d, sp, reg);
			whole = 1;
			if (*slot || !skip_null)
				visit(slot, slot);
			whole = 0;
			k++;
			continue;
		}
		struct location both[2] = {d, location_at(r, k + 1)};
		for (int n = 0; n < 2; n++)
			if (misread && both[n].kind == 3 && both[n].reg == wrong.reg && both[n].value == wrong.value)
				both[n].value += misread_delta;
		void **base = slot_of(both[0], sp, reg), **slot = slot_of(both[1], sp, reg);
		if (slot && !base)
			die(5, "a base is constant", r->pc);
		if (slot)
			for (int word = 0; word < both[1].size / 8; word++)
				visit(slot + word, base + word);
		k += 2;
		pair++;
	}
}

// pushes makes reg point to the registers that a function has pushed, below the return address at top.
static void pushes(const unsigned char *code, uint64_t *top, uint64_t **reg) {
	static const int low[] = {-1, -1, -1, 3, -1, 6}, high[] = {12, 13, 14, 15};
	for (;;)
		if (!memcmp(code, "\xf3\x0f\x1e\xfa", 4)) // endbr64
			code += 4;
		else if (!memcmp(code, "\x48\x89\xe5", 3)) // mov rbp, rsp
			code += 3;
		else if (*code >= 0x50 && *code <= 0x55) {
			top--;
			if (low[*code - 0x50] >= 0)
				reg[low[*code - 0x50]] = top;
			code++;
		} else if (code[0] == 0x41 && code[1] >= 0x54 && code[1] <= 0x57) {
			reg[high[code[1] - 0x54]] = --top;
			code += 2;
		} else
			return;
}

// crossing is a call from compiled code through C into compiled code.
struct crossing { struct saved *saved; struct crossing *outer; };
static struct crossing *crossings;

static void walk(struct saved *s) {
	struct crossing *c = crossings;
	for (;;) {
		uint64_t *reg[16] = {[3] = &s->rbx, [6] = &s->rbp, [12] = &s->r12, [13] = &s->r13, [14] = &s->r14, [15] = &s->r15};
		uint64_t pc = s->pc, sp = (uint64_t)(s + 1);
		struct record *r;
		for (; (r = record_of(pc)); sp += 8) {
			visit_frame(r, sp, reg);
			if (r->frame > 1 << 20)
				die(5, "frame of unknown size", pc);
			sp += r->frame;
			pushes((const unsigned char *)r->function, (uint64_t *)sp, reg);
			pc = *(uint64_t *)sp;
		}
		if (!c)
			return;
		s = c->saved;
		c = c->outer;
	}
}

// log_reachable logs the number and the size of the objects that roots in pairs reach whose pointer is their own base.
static void log_reachable(void) {
	static struct object *list[1 << 16];
	const uint64_t seen = 1ull << 63;
	uint64_t n = 0, done = 0, size = 0;
	for (int k = 0; k < pair_count; k++) {
		struct object *o = *pairs[k].slot;
		if (pairs[k].slot == pairs[k].base && !pairs[k].whole && !(o->header & seen)) {
			o->header |= seen;
			list[n++] = o;
		}
	}
	for (; done < n; done++) {
		struct object *o = list[done];
		for (uint64_t k = 0; k < (o->header & 0xffff); k++)
			if (!(o->ref[k]->header & seen)) {
				o->ref[k]->header |= seen;
				list[n++] = o->ref[k];
			}
	}
	for (uint64_t k = 0; k < n; k++) {
		list[k]->header &= ~seen;
		size += size_of(list[k]);
	}
	fprintf(out, "reachable %lu %lu\n", n, size);
}

static void *handles[64]; // of C
static int handle_count;

__attribute__((noinline)) void collect(struct saved *s) {
	collections++;
	if (out)
		fprintf(out, "collection %ld thread %ld\n", collections, syscall(SYS_gettid));
	pair_count = 0;
	frame_number = -1;
	walk(s);
	char *old = from, *old_end = next;
	open_space(collections);
	char *scan = next;
	for (int k = 0; k < handle_count; k++)
		*(void **)handles[k] = forward(*(void **)handles[k], old, old_end);
	for (struct pair *p = pairs; p < pairs + pair_count; p++) {
		char *to = p->whole && !p->of ? NULL : (char *)forward(p->of, old, old_end);
		*p->slot = to + (p->value - (char *)p->of);
		if (out)
			fprintf(out, "%s %ld 0x%lx 0x%lx 0x%lx 0x%lx 0x%lx 0x%lx\n", p->whole ? "object" : "root", p->frame, (uint64_t)p->slot, (uint64_t)p->base,
			        (uint64_t)p->value, (uint64_t)p->of, (uint64_t)*p->slot, (uint64_t)to);
	}
	while (scan < next) {
		struct object *o = (struct object *)scan;
		if ((o->header & ~0xffffull) != magic) { // a gap
			scan += 8;
			continue;
		}
		for (uint64_t k = 0; k < (o->header & 0xffff); k++)
			o->ref[k] = forward(o->ref[k], old, old_end);
		scan += size_of(o);
	}
	if (out)
		log_reachable();
	if (fill)
		memset(old, 0xdd, space_size);
	else if (mprotect(old, space_size, PROT_NONE) || madvise(old, space_size, MADV_DONTNEED))
		die(4, "no space", (uint64_t)old);
	if (stop && collections >= stop && (step ? (collections - stop) % step == 0 : collections == stop)) {
		if (out)
			fflush(out);
		puts("ready");
		pause();
	}
}

static void safepoint(struct saved *s) {
	safepoints++;
	if (every && safepoints % every == 0)
		for (int k = 0; k <= again; k++)
			collect(s);
}

// Functions that compiled code calls. The stubs pass what they have saved as the fifth argument.

struct object *alloc_c(int64_t refs, int64_t tag, int64_t unused, int64_t unused1, struct saved *s) {
	(void)unused, (void)unused1;
	if (s)
		safepoint(s);
	struct object *o = room(sizeof *o + 8 * refs);
	if (!o)
		die(4, "heap exhausted", refs);
	o->header = magic | (uint64_t)refs;
	o->word[0] = ++ids;
	for (int k = 1; k < 4; k++)
		o->word[k] = (ids * 4 + k) * 0x9e3779b97f4a7c15 ^ (uint64_t)tag;
	for (int64_t k = 0; k < refs; k++)
		o->ref[k] = o;
	return o;
}

void poll_c(int64_t unused, int64_t unused1, int64_t unused2, int64_t unused3, struct saved *s) {
	(void)unused, (void)unused1, (void)unused2, (void)unused3;
	safepoint(s);
}

static void caught(_Unwind_Reason_Code code, struct _Unwind_Exception *e) { (void)code, (void)e; }

int64_t maythrow_c(int64_t n, int64_t unused1, int64_t unused2, int64_t unused3, struct saved *s) {
	(void)unused1, (void)unused2, (void)unused3;
	safepoint(s);
	if (n & 1)
		return n;
	static struct _Unwind_Exception thrown;
	thrown = (struct _Unwind_Exception){.exception_class = 0x7265667267630000, .exception_cleanup = caught};
	_Unwind_RaiseException(&thrown);
	return n; // no frame catches it
}

static void leave(struct crossing *c) { crossings = c->outer; }

struct object *through_c(struct object *a, struct object *b, int64_t depth, struct object *(*to)(struct object *, struct object *, int64_t), struct saved *s) {
	handles[handle_count++] = &a;
	handles[handle_count++] = &b;
	safepoint(s);
	handle_count -= 2;
	__attribute__((cleanup(leave))) struct crossing c = {s, crossings};
	crossings = &c;
	return to(a, b, depth);
}

int64_t gc_fuel(void) { return fuel > 0 ? fuel-- : 0; }

#define STUB(name, to) \
	__asm__(".globl " #name "\n.type " #name ", @function\n" #name ":\n.cfi_startproc\n" \
	        "push %rbp\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset rbp, 0\n" \
	        "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset rbx, 0\n" \
	        "push %r12\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset r12, 0\n" \
	        "push %r13\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset r13, 0\n" \
	        "push %r14\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset r14, 0\n" \
	        "push %r15\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset r15, 0\n" \
	        "sub $8, %rsp\n.cfi_adjust_cfa_offset 8\n" \
	        "mov %rsp, %r8\ncall " #to "\n" \
	        "add $8, %rsp\n.cfi_adjust_cfa_offset -8\n" \
	        "pop %r15\n.cfi_adjust_cfa_offset -8\n.cfi_restore r15\n" \
	        "pop %r14\n.cfi_adjust_cfa_offset -8\n.cfi_restore r14\n" \
	        "pop %r13\n.cfi_adjust_cfa_offset -8\n.cfi_restore r13\n" \
	        "pop %r12\n.cfi_adjust_cfa_offset -8\n.cfi_restore r12\n" \
	        "pop %rbx\n.cfi_adjust_cfa_offset -8\n.cfi_restore rbx\n" \
	        "pop %rbp\n.cfi_adjust_cfa_offset -8\n.cfi_restore rbp\n" \
	        "ret\n.cfi_endproc\n.size " #name ", . - " #name "\n")
STUB(gc_alloc, alloc_c);
STUB(gc_poll, poll_c);
STUB(gc_maythrow, maythrow_c);
STUB(gc_through, through_c);

// The checksum: a hash of all objects that are reachable, in the order of a walk, with their numbers for addresses.

static uint64_t sum;
static void add(uint64_t v) { sum = (sum ^ v) * 0x100000001b3; }

static void checksum(struct object *o) {
	static struct object *list[1 << 18];
	size_t n = 0, done = 0;
	for (list[n++] = o; done < n; done++) {
		o = list[done];
		if (o->header & 1ull << 63)
			continue;
		o->header |= 1ull << 63; // visited
		for (int k = 0; k < 4; k++)
			add(o->word[k]);
		for (uint64_t k = 0; k < (o->header & 0xffff); k++) {
			add(o->ref[k]->word[0]);
			if (!(o->ref[k]->header & 1ull << 63) && n < sizeof list / sizeof *list)
				list[n++] = o->ref[k];
		}
	}
}

static void handler(int number) { (void)number; }

int main(int argc, char **argv) {
	for (int k = 1; k < argc; k++) {
		char *value = k + 1 < argc ? argv[k + 1] : "";
		if (!strcmp(argv[k], "-fill")) {
			fill = 1;
			continue;
		}
		if (!strcmp(argv[k], "-skip-null")) {
			skip_null = 1;
			continue;
		}
		if (!strcmp(argv[k], "-again")) {
			again = 1;
			continue;
		}
		if (!strcmp(argv[k], "-every"))
			every = atoi(value);
		else if (!strcmp(argv[k], "-log"))
			out = fopen(value, "w");
		else if (!strcmp(argv[k], "-stop"))
			stop = atoi(value);
		else if (!strcmp(argv[k], "-step"))
			step = atoi(value);
		else if (!strcmp(argv[k], "-rounds"))
			rounds = atoi(value);
		else if (!strcmp(argv[k], "-pause-at"))
			pause_at = atol(value);
		else if (!strcmp(argv[k], "-exit-at"))
			exit_at = atol(value);
		else if (!strcmp(argv[k], "-skip"))
			skipped = atol(value);
		else if (strcmp(argv[k], "-misread") || sscanf(value, "%ld:%d:%d", &misread_id, &misread_pair, &misread_delta) != 3)
			return 2;
		k++;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGUSR1, handler);
	read_maps();
	arena = mmap(NULL, arena_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (arena == MAP_FAILED)
		die(4, "no space", 0);
	open_space(0);
	struct object *a = alloc_c(4, 1, 0, 0, NULL), *b = alloc_c(8, 2, 0, 0, NULL);
	handles[handle_count++] = &a;
	handles[handle_count++] = &b;
	for (int k = 0; k < rounds; k++) {
		fuel = 40;
		struct object *result = program(a, b, 4);
		a->ref[0] = result; // a may have moved
	}
	checksum(a);
	checksum(b);
	if (out)
		fclose(out);
	printf("result %#lx\n", sum);
	printf("collections %ld safepoints %ld frames %ld roots %ld\n", collections, safepoints, frames, roots);
	return 0;
}
