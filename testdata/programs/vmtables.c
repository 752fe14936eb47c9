// A producer of exit descriptions in memory, in four encodings: the function ftl of vmtables.ll has a side table of C structs, hotspot a
// compressed stream with senders and an object pool, v8 a translation array, yk exit tables. The argument is a seed: it chooses the frames, values and
// objects. Before it calls the functions, the program logs what it encodes, a line for each frame, value and object, with the function's name before it.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// The live values of each site in vmtables.ll, in the order of its operands.
struct given { int64_t a, b; int32_t i, j; double d; void *p; int64_t boxed, small, tag, payload; } given;
enum { A, B, I, J, D, P, BOXED, SMALL, TAG, PAYLOAD };

static uint64_t state;
static unsigned pick(unsigned n) {
	state ^= state << 13, state ^= state >> 7, state ^= state << 17;
	return (state >> 33) % n;
}

// What is encoded. The kinds of values, by the encodings that have them.
enum kind { DEAD, INT32, INT64, DOUBLE, REF, BOX, SMI, PAIR, SUM, SHIFTED, CONSTANT, OBJECT };
struct value { enum kind kind; int operand; int64_t constant; int object, first; };
struct method { char name[16]; };
struct klass { uint32_t magic; char name[12]; };
struct frame { struct method *method; int position, reexecute, n; struct value local[6]; };
struct object { struct klass *klass; int n, at[3]; struct value field[3]; };
static struct frame frames[2]; // outermost first
static struct object objects[8];
static int nobjects;
static struct method methods[] = {{"Point.norm"}, {"Point.scale"}, {"Main.run"}};
static struct klass classes[] = {{7, "Point"}, {7, "Pair"}};

static struct value choose(unsigned allowed, int depth) {
	for (;;) {
		struct value v = {.kind = pick(OBJECT + 1)};
		if (!(allowed >> v.kind & 1) || (v.kind == DEAD && depth > 0))
			continue;
		switch (v.kind) {
		case INT32: v.operand = pick(2) ? I : J; break;
		case INT64: v.operand = pick(2) ? A : B; break;
		case DOUBLE: v.operand = D; break;
		case REF: v.operand = P; break;
		case BOX: v.operand = BOXED; break;
		case SMI: v.operand = SMALL; break;
		case CONSTANT: v.constant = (int64_t)pick(100000) - 50000; break;
		case OBJECT:
			if (nobjects > 0 && (pick(2) || depth > 2 || nobjects == 8)) {
				v.object = pick(nobjects);
				return v;
			}
			if (depth > 2)
				continue;
			v.object = nobjects++, v.first = 1;
			struct object *o = &objects[v.object];
			o->klass = &classes[pick(2)], o->n = 1 + pick(3);
			for (int k = 0; k < o->n; k++)
				o->at[k] = 8 + 8 * k, o->field[k] = choose(allowed, depth + 1);
			break;
		default: break;
		}
		return v;
	}
}

static void generate(unsigned allowed) {
	nobjects = 0;
	for (int f = 0; f < 2; f++) {
		frames[f].method = &methods[f ? pick(2) : 2], frames[f].position = pick(3000), frames[f].n = 1 + pick(5), frames[f].reexecute = f && pick(2);
		for (int k = 0; k < frames[f].n; k++)
			frames[f].local[k] = choose(allowed, 0);
	}
	if (allowed >> OBJECT & 1) // both frames share an object
		for (int f = 0; f < 2; f++) {
			struct value shared = {.kind = OBJECT, .object = 0, .first = nobjects == 0};
			if (nobjects == 0)
				nobjects = 1, objects[0] = (struct object){&classes[0], 1, {8}, {{.kind = OBJECT, .object = 0}}};
			frames[f].local[frames[f].n++] = shared;
		}
}

static void say(struct value *v) {
	switch (v->kind) {
	case DEAD: printf("dead\n"); return;
	case INT32: printf("i32 %d\n", v->operand == I ? given.i : given.j); return;
	case INT64: printf("i64 %" PRId64 "\n", v->operand == A ? given.a : given.b); return;
	case DOUBLE: printf("f64 %.1f\n", given.d); return;
	case REF: printf("ref 0x%" PRIx64 "\n", (uint64_t)given.p); return;
	case BOX: printf("i32 %d\n", (int32_t)given.boxed); return;
	case SMI: printf("i64 %" PRId64 "\n", given.small >> 1); return;
	case PAIR: given.tag == 3 ? printf("ref string 0x%" PRIx64 "\n", given.payload) : printf("i32 %d\n", (int32_t)given.payload); return;
	case SUM: printf("i64 %" PRId64 "\n", given.a + given.i); return;
	case SHIFTED: printf("i64 %" PRId64 "\n", given.b >> (given.a & 7)); return;
	case CONSTANT: printf("i64 %" PRId64 "\n", v->constant); return;
	case OBJECT: printf("object %d\n", v->object); return;
	}
}

static void tell(const char *how, const char *resume) {
	for (int f = 1; f >= 0; f--) {
		printf("%s %s @ %d %s\n", how, frames[f].method->name, frames[f].position, f == 0 ? "in-call" : resume ? resume : frames[f].reexecute ? "reexecute" : "in-call");
		for (int k = 0; k < frames[f].n; k++)
			printf("%s   local %d: ", how, k), say(&frames[f].local[k]);
	}
	for (int o = 0; o < nobjects; o++) {
		printf("%s object %d %s\n", how, o, objects[o].klass->name);
		for (int k = 0; k < objects[o].n; k++)
			printf("%s   +%d: ", how, objects[o].at[k]), say(&objects[o].field[k]);
	}
}

// The memory of all descriptions.
static char *heap, *next;
static void *allocate(size_t n) {
	char *at = next;
	next += (n + 15) & ~15;
	return at;
}

// 1. Side tables, as of WebKit's FTL: an exit has values by kind, objects to materialize, and a chain of code origins, the innermost first.
struct ftl_value { uint8_t kind, op; uint16_t left, right; int64_t constant; };
struct ftl_origin { struct method *method; struct ftl_origin *caller; uint32_t position, count; struct ftl_value values[6]; };
struct ftl_object { struct klass *klass; uint32_t count, at[3]; struct ftl_value fields[3]; };
struct ftl_exit { uint32_t id, objects; struct ftl_origin *origin; struct ftl_object *object; } *ftl_exits;
uint32_t ftl_count = 2;
enum { FTL_DEAD, FTL_INT32, FTL_INT64, FTL_DOUBLE, FTL_CELL, FTL_BOXED, FTL_PAIR, FTL_RECOVERED, FTL_CONSTANT, FTL_MATERIALIZED };

static struct ftl_value ftl_of(struct value *v) {
	switch (v->kind) {
	case INT32: return (struct ftl_value){.kind = FTL_INT32, .left = v->operand};
	case INT64: return (struct ftl_value){.kind = FTL_INT64, .left = v->operand};
	case DOUBLE: return (struct ftl_value){.kind = FTL_DOUBLE, .left = v->operand};
	case REF: return (struct ftl_value){.kind = FTL_CELL, .left = v->operand};
	case BOX: return (struct ftl_value){.kind = FTL_BOXED, .left = v->operand};
	case PAIR: return (struct ftl_value){.kind = FTL_PAIR, .left = TAG, .right = PAYLOAD};
	case SUM: return (struct ftl_value){.kind = FTL_RECOVERED, .op = '+', .left = A, .right = I};
	case SHIFTED: return (struct ftl_value){.kind = FTL_RECOVERED, .op = '>', .left = B, .right = A};
	case CONSTANT: return (struct ftl_value){.kind = FTL_CONSTANT, .constant = v->constant};
	case OBJECT: return (struct ftl_value){.kind = FTL_MATERIALIZED, .left = v->object};
	default: return (struct ftl_value){.kind = FTL_DEAD};
	}
}

static void encode_ftl(void) {
	ftl_exits = allocate(2 * sizeof *ftl_exits);
	ftl_exits[0].id = 99; // another exit
	struct ftl_exit *x = &ftl_exits[1];
	x->id = 1, x->objects = nobjects, x->object = allocate(nobjects * sizeof *x->object);
	for (int f = 0; f < 2; f++) {
		struct ftl_origin *o = allocate(sizeof *o);
		o->method = frames[f].method, o->caller = x->origin, o->position = frames[f].position, o->count = frames[f].n;
		for (int k = 0; k < frames[f].n; k++)
			o->values[k] = ftl_of(&frames[f].local[k]);
		x->origin = o;
	}
	for (int n = 0; n < nobjects; n++) {
		struct ftl_object *o = &x->object[n];
		o->klass = objects[n].klass, o->count = objects[n].n;
		for (int k = 0; k < objects[n].n; k++)
			o->at[k] = objects[n].at[k], o->fields[k] = ftl_of(&objects[n].field[k]);
	}
}

// Streams of bytes.
static uint8_t *stream;
static int put;
static void uleb(uint64_t v) {
	do
		stream[put++] = (v & 127) | (v > 127 ? 128 : 0);
	while (v >>= 7);
}
static void sleb(int64_t v) {
	for (;; v >>= 7) {
		int last = v >= -64 && v < 64;
		stream[put++] = (v & 127) | (last ? 0 : 128);
		if (last)
			return;
	}
}

// 2. A compressed stream, as of HotSpot: a scope has its sender, method, position + 1 and the offset of its locals; objects are in a pool. The methods
// and classes are indices into a table.
struct hotspot_pc { uint32_t record, scope, pool; } hotspot_pcs[2];
uint8_t *hotspot_stream;
void *hotspot_metadata[8];
enum { LOCATION, CONSTANT_INT, CONSTANT_LONG, OBJECT_VALUE, OBJECT_ID, ILLEGAL };
enum { T_DOUBLE = 7, T_INT = 10, T_LONG = 11, T_OBJECT = 12 };

static int metadata(void *p) {
	int n = 0;
	while (hotspot_metadata[n] && hotspot_metadata[n] != p)
		n++;
	hotspot_metadata[n] = p;
	return n;
}

static void hotspot_value(struct value *v) {
	switch (v->kind) {
	case DEAD: uleb(ILLEGAL); return;
	case CONSTANT: uleb(CONSTANT_LONG), sleb(v->constant); return;
	case OBJECT: uleb(OBJECT_ID), uleb(v->object); return;
	default: uleb(LOCATION), uleb(v->operand << 4 | (v->kind == INT32 ? T_INT : v->kind == INT64 ? T_LONG : v->kind == DOUBLE ? T_DOUBLE : T_OBJECT));
	}
}

static void encode_hotspot(void) {
	hotspot_stream = stream = allocate(1024), put = 1; // offset 0 is no sender
	int sender = 0;
	for (int f = 0; f < 2; f++) {
		int locals = put;
		uleb(frames[f].n);
		for (int k = 0; k < frames[f].n; k++)
			hotspot_value(&frames[f].local[k]);
		int scope = put;
		uleb(sender), uleb(metadata(frames[f].method)), uleb(frames[f].position + 1), uleb(frames[f].reexecute), uleb(locals);
		sender = scope;
	}
	hotspot_pcs[0] = (struct hotspot_pc){98, 0, 0};
	hotspot_pcs[1] = (struct hotspot_pc){2, sender, put};
	uleb(nobjects);
	for (int n = 0; n < nobjects; n++) {
		uleb(OBJECT_VALUE), uleb(n), uleb(metadata(objects[n].klass)), uleb(objects[n].n);
		for (int k = 0; k < objects[n].n; k++)
			uleb(objects[n].at[k]), hotspot_value(&objects[n].field[k]);
	}
}

// 3. A translation array, as of V8: opcodes with numbers, frames outermost first. An object is captured where it is first referred to.
uint8_t *v8_translations;
uint32_t v8_index[8]; // offsets by record id
void *v8_literals[8];
enum { BEGIN, INTERPRETED_FRAME, V8_TAGGED, V8_INT32, V8_INT64, V8_DOUBLE, V8_REFERENCE, LITERAL, CAPTURED_OBJECT, DUPLICATED_OBJECT, OPTIMIZED_OUT };

// A sign and magnitude, as in base/vlq.h.
static void vlq(int64_t v) { uleb(v < 0 ? (uint64_t)-v << 1 | 1 : (uint64_t)v << 1); }

static int literal(void *p) {
	int n = 0;
	while (v8_literals[n] && v8_literals[n] != p)
		n++;
	v8_literals[n] = p;
	return n;
}

static void v8_value(struct value *v) {
	switch (v->kind) {
	case DEAD: uleb(OPTIMIZED_OUT); return;
	case SMI: uleb(V8_TAGGED), vlq(v->operand); return;
	case INT32: uleb(V8_INT32), vlq(v->operand); return;
	case INT64: uleb(V8_INT64), vlq(v->operand); return;
	case DOUBLE: uleb(V8_DOUBLE), vlq(v->operand); return;
	case REF: uleb(V8_REFERENCE), vlq(v->operand); return;
	case CONSTANT: uleb(LITERAL), vlq(v->constant); return;
	default:
		if (!v->first) {
			uleb(DUPLICATED_OBJECT), vlq(v->object);
			return;
		}
		struct object *o = &objects[v->object];
		uleb(CAPTURED_OBJECT), vlq(literal(o->klass)), vlq(o->n);
		for (int k = 0; k < o->n; k++)
			v8_value(&o->field[k]);
	}
}

static void encode_v8(void) {
	v8_translations = stream = allocate(1024), put = 5;
	v8_index[3] = put;
	uleb(BEGIN), vlq(2);
	for (int f = 0; f < 2; f++) {
		uleb(INTERPRETED_FRAME), vlq(frames[f].position), vlq(literal(frames[f].method)), vlq(frames[f].n);
		for (int k = 0; k < frames[f].n; k++)
			v8_value(&frames[f].local[k]);
	}
}

// 4. Exit tables, as of yk: for each frame the function, the place and the number of its values; then for each value its width, its source and its
// destination, flat.
struct yk_frame { struct method *function; uint32_t place, values; };
struct yk_value { uint16_t bits, from, to; };
struct yk_exit { uint64_t id; struct yk_exit *next; uint32_t frames, values; } *yk_exits;

static void encode_yk(void) {
	struct yk_exit *x = allocate(sizeof *x + 2 * sizeof(struct yk_frame) + 12 * sizeof(struct yk_value)), *other = allocate(sizeof *other);
	*other = (struct yk_exit){.id = 97, .next = x}, yk_exits = other;
	*x = (struct yk_exit){.id = 4, .frames = 2};
	struct yk_frame *f = (void *)(x + 1);
	struct yk_value *v = (void *)(f + 2);
	for (int n = 0; n < 2; n++) {
		f[n] = (struct yk_frame){frames[n].method, frames[n].position, frames[n].n};
		for (int k = 0; k < frames[n].n; k++)
			v[x->values++] = (struct yk_value){frames[n].local[k].kind == INT32 ? 32 : 64, frames[n].local[k].operand, k};
	}
}

int64_t take_over(void) {
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}

// Called by the main function of vmtables.ll.
int64_t tables(int argc, char **argv, int64_t ftl(struct given *)) {
	state = argc > 1 ? strtoull(argv[1], 0, 10) * 0x9e3779b97f4a7c15 | 1 : 1;
	for (int k = 0; k < 8; k++)
		pick(2);
	heap = next = mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	given = (struct given){(int64_t)pick(1 << 30) - (1 << 29), (int64_t)pick(1 << 30) << 12, -(int)pick(1000), pick(1 << 30), pick(1000) - 499.5, heap,
		(int64_t)0xffff << 48 | (uint32_t)-(int)pick(1000), -2 * (int64_t)pick(1 << 30), pick(2) ? 3 : 1, 0x5000 + pick(1 << 20)};
	unsigned plain = 1 << INT32 | 1 << INT64, common = plain | 1 << DEAD | 1 << DOUBLE | 1 << REF | 1 << CONSTANT | 1 << OBJECT;
	generate(common | 1 << BOX | 1 << PAIR | 1 << SUM | 1 << SHIFTED), encode_ftl(), tell("ftl", "reexecute");
	generate(common), encode_hotspot(), tell("hotspot", 0);
	generate(common | 1 << SMI), encode_v8(), tell("v8", "after");
	generate(plain), encode_yk(), tell("yk", "reexecute");
	return ftl(&given);
}
