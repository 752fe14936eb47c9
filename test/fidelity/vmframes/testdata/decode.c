// The run time of the random programs of described_test.go, and the virtual machine's own decoder of their exits. Each function of a program has stored
// the bits of its operands in vm_out before it calls the next one; the last calls take_over, which decodes all exits and logs their frames.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct function { char name[8]; uint64_t id; uint32_t encoding, out; };
extern struct function vm_functions[];
extern uint32_t vm_function_count, vm_position_bits;
extern uint64_t vm_out[];
extern char vm_methods[][16], vm_classes[][16];
int64_t f0(int64_t);

static const char *const resumes[] = {"reexecute", "after", "in-call", "rethrow"};
static const char *function; // whose exit is decoded
static uint64_t *out;        // its operands

static void log_frame(unsigned method, unsigned position, const char *resume) { printf("%s %s @ %u %s\n", function, vm_methods[method], position, resume); }

static double of_bits(uint64_t bits) {
	double d;
	memcpy(&d, &bits, 8);
	return d;
}

// C prints the sign of a NaN, and no prefix of %#x before 0.
static void log_f64(uint64_t bits) {
	if (of_bits(bits) != of_bits(bits))
		printf("f64 0x%" PRIx64 " nan\n", bits);
	else
		printf("f64 0x%" PRIx64 " %.17g\n", bits, of_bits(bits));
}
static void log_i32(int32_t v) { printf("i32 0x%" PRIx32 " %" PRId32 "\n", (uint32_t)v, v); }
static void log_i64(int64_t v) { printf("i64 0x%" PRIx64 " %" PRId64 "\n", (uint64_t)v, v); }
static void log_ref(const char *kind, uint64_t v) { printf("ref%s 0x%" PRIx64 " 0x%" PRIx64 "\n", kind, v, v); }

// A tag and a payload. The upper bits of both may be anything.
static void log_tagged(uint64_t tag, uint64_t payload) {
	switch (tag & 0xff) {
	case 0: printf("null\n"); return;
	case 1: log_i32((int32_t)payload); return;
	case 2: log_i64((int64_t)payload); return;
	case 3: log_ref(" string", payload); return;
	case 4: log_f64(payload); return;
	case 5: printf("symbol true\n"); return;
	case 6: printf("i8 0x%x %d\n", (unsigned)(uint8_t)payload, (int8_t)payload); return;
	case 7: printf("u16 0x%x %u\n", (unsigned)(uint16_t)payload, (unsigned)(uint16_t)payload); return;
	}
}

static void log_16(uint64_t *at) { log_tagged(at[0], at[1]); }

// A value of 24 bytes: what it is, and two words from which it is computed.
static void log_24(uint64_t *at) {
	switch (at[0] & 3) {
	case 0: log_i64((int64_t)(at[1] + at[2])); return;
	case 1: log_f64(at[1] ^ at[2]); return;
	case 2: log_ref("", at[1] | at[2]); return;
	case 3: log_i64((int64_t)*(uint64_t *)(at[1] - at[2])); return; // in memory
	}
}

static void log_box(uint64_t bits) {
	if (bits >> 48 == 0xffff)
		log_i32((int32_t)bits);
	else if (bits == 0)
		printf("null\n");
	else if (bits >> 48 == 0)
		log_ref("", bits);
	else
		log_f64(bits - ((uint64_t)1 << 48));
}

enum { DEAD, I32, I64, F64, REF, BOX, PAIR, WIDE16, WIDE24, SUM, CONSTANT, OBJECT, SHIFT, MEMORY };

static void log_value(int kind, unsigned left, unsigned right, int64_t constant) {
	uint64_t a = out[left], b = out[right];
	switch (kind) {
	case DEAD: printf("dead\n"); return;
	case I32: log_i32((int32_t)a); return;
	case I64: log_i64((int64_t)a); return;
	case F64: log_f64(a); return;
	case REF: log_ref("", a); return;
	case BOX: log_box(a); return;
	case PAIR: log_tagged(a, b); return;
	case WIDE16: log_16((uint64_t *)(a + constant)); return;
	case WIDE24: log_24((uint64_t *)(a + constant)); return;
	case SUM: log_i64((int64_t)(a + (int64_t)(int32_t)b)); return;
	case CONSTANT: log_i64(constant); return;
	case OBJECT: printf("object %" PRId64 "\n", constant); return;
	case SHIFT: log_i64((int64_t)a >> (b & 7)); return;
	case MEMORY: log_i32(*(int32_t *)(a + constant)); return;
	}
}

// 1. A side table of C structs, found by the id of the record.
struct exit { uint64_t id; uint32_t frame, frames, object, objects; };
struct frame { uint32_t method, position, value; uint16_t locals, stack, locks, resume; };
struct value { uint8_t kind, flag; uint16_t left, right, none; int64_t constant; };
struct object { uint32_t klass, value, at; uint16_t fields, none; };
extern struct exit vm_exits[];
extern struct frame vm_frames[];
extern struct value vm_values[];
extern struct object vm_objects[];
extern uint32_t vm_offsets[];

static void log_table_value(struct value *v) { log_value(v->kind, v->left, v->right, v->constant); }

static void decode_table(uint64_t id) {
	struct exit *x = vm_exits;
	while (x->id != id)
		x++;
	for (struct frame *f = &vm_frames[x->frame]; f < &vm_frames[x->frame + x->frames]; f++) {
		log_frame(f->method, f->position, resumes[f->resume]);
		struct value *v = &vm_values[f->value];
		for (int k = 0; k < f->locals; k++)
			printf("%s   local %d: ", function, k), log_table_value(v++);
		for (int k = 0; k < f->stack; k++)
			printf("%s   stack %d: ", function, k), log_table_value(v++);
		for (int k = 0; k < f->locks; k++)
			printf("%s   %slock: ", function, v->flag ? "eliminated " : ""), log_table_value(v), v++;
	}
	for (unsigned n = 0; n < x->objects; n++) {
		struct object *o = &vm_objects[x->object + n];
		printf("%s object %u %s\n", function, n, vm_classes[o->klass]);
		for (int k = 0; k < o->fields; k++)
			printf("%s   +%u: ", function, vm_offsets[o->at + k]), log_table_value(&vm_values[o->value + k]);
	}
}

// 2. A compressed stream of numbers in LEB128, found by an index.
struct entry { uint64_t id; uint32_t frames, objects; };
extern struct entry vm_index[];
extern uint8_t vm_stream[];

static uint64_t uleb(uint8_t **at) {
	uint64_t v = 0;
	for (int shift = 0;; shift += 7) {
		uint8_t byte = *(*at)++;
		v |= (uint64_t)(byte & 127) << shift;
		if (byte < 128)
			return v;
	}
}

static int64_t sleb(uint8_t **at) {
	uint64_t v = 0;
	for (int shift = 0;;) {
		uint8_t byte = *(*at)++;
		v |= (uint64_t)(byte & 127) << shift;
		shift += 7;
		if (byte < 128)
			return (int64_t)(byte & 64 && shift < 64 ? v | ~(uint64_t)0 << shift : v);
	}
}

static void log_stream_value(uint8_t **at) {
	unsigned head = uleb(at), kind = head & 15, left = head >> 4, right = 0;
	int64_t constant = 0;
	if (kind == PAIR || kind == SUM || kind == SHIFT)
		right = uleb(at);
	if (kind == WIDE16 || kind == WIDE24 || kind == CONSTANT || kind == OBJECT || kind == MEMORY)
		constant = sleb(at);
	log_value(kind, left, right, constant);
}

static void decode_stream(uint64_t id) {
	struct entry *e = vm_index;
	while (e->id != id)
		e++;
	for (uint8_t *at = vm_stream + e->frames; at != vm_stream;) {
		unsigned sender = uleb(&at), method = uleb(&at), position = uleb(&at), resume = uleb(&at);
		log_frame(method, position, resumes[resume]);
		for (int k = 0, n = uleb(&at); k < n; k++)
			printf("%s   local %d: ", function, k), log_stream_value(&at);
		for (int k = 0, n = uleb(&at); k < n; k++)
			printf("%s   stack %d: ", function, k), log_stream_value(&at);
		for (int k = 0, n = uleb(&at); k < n; k++)
			printf("%s   %slock: ", function, uleb(&at) ? "eliminated " : ""), log_stream_value(&at);
		at = vm_stream + sender;
	}
	uint8_t *at = vm_stream + e->objects;
	for (unsigned n = 0, count = uleb(&at); n < count; n++) {
		printf("%s object %u %s\n", function, n, vm_classes[uleb(&at)]);
		for (unsigned k = uleb(&at); k > 0; k--)
			printf("%s   +%u: ", function, (unsigned)uleb(&at)), log_stream_value(&at);
	}
}

// 3. Keys that are packed in the id of the record. The operands are pairs of a tag and a payload: values, and then objects.
static void log_key_value(uint64_t **at) {
	uint64_t tag = (*at)[0], payload = (*at)[1];
	*at += 2;
	switch (tag) {
	case 100: printf("dead\n"); return;
	case 101: printf("object %" PRIu64 "\n", payload); return;
	case 103: log_i64((int64_t)payload); return;
	case 116: log_16((uint64_t *)payload); return;
	case 124: log_24((uint64_t *)payload); return;
	}
	log_tagged(tag, payload);
}

static void decode_keys(uint64_t id) {
	uint64_t *at = out;
	int frames = (id >> 1 & 3) + 1, bits = vm_position_bits;
	const char *resume = resumes[id >> 3 & 3];
	for (uint64_t key = id >> 5; frames-- > 0; key >>= 10 + bits, resume = "in-call") {
		log_frame(key & 31, key >> 5 & ((1 << bits) - 1), resume);
		for (int k = 0, n = key >> (5 + bits) & 7; k < n; k++)
			printf("%s   local %d: ", function, k), log_key_value(&at);
		for (int k = 0, n = key >> (8 + bits) & 3; k < n; k++)
			printf("%s   stack %d: ", function, k), log_key_value(&at);
	}
	for (unsigned n = 0, count = *at++; n < count; n++) {
		printf("%s object %u %s\n", function, n, vm_classes[*at++]);
		for (unsigned k = *at++; k > 0; k--)
			printf("%s   +%u: ", function, (unsigned)*at++), log_key_value(&at);
	}
}

int64_t take_over(void) {
	for (unsigned n = 0; n < vm_function_count; n++) {
		struct function *f = &vm_functions[n];
		function = f->name, out = vm_out + f->out;
		if (f->encoding == 0)
			decode_table(f->id);
		else if (f->encoding == 1)
			decode_stream(f->id);
		else
			decode_keys(f->id);
	}
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}

int main(void) { return (int)f0(1); }
