// Values, objects, and the effects of instructions on them, for both tiers.
#include "vm.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sys/mman.h>

long tinyvm_fuel = 100000, tinyvm_stopped = 0;
char tinyvm_why[128];
uint8_t tinyvm_cards[256];

namespace tinyvm {

Options options;
std::vector<Class *> classes;
std::vector<Method *> methods;

Value box_int(int32_t i) { return int_tag | static_cast<uint32_t>(i); }

Value box_double(double d) {
  uint64_t bits;
  if (std::isnan(d)) return 0x7ff8000000000000 + double_offset; // only one NaN is used, because others could look like an int
  memcpy(&bits, &d, sizeof bits);
  return bits + double_offset;
}

double unbox_double(Value v) {
  double d;
  v -= double_offset;
  memcpy(&d, &v, sizeof d);
  return d;
}

static double number(Value v) { return is_int(v) ? static_cast<int32_t>(v) : unbox_double(v); }

Object *object(Value v) { return !is_ref(v) || v == null ? nullptr : serving ? fetched(v) : reinterpret_cast<Object *>(v); }
Value reference(Object *o) { return serving ? address_of(o) : reinterpret_cast<Value>(o); }

uint8_t saw(Value v) { return is_int(v) ? SAW_INT : v == null ? SAW_NULL : is_ref(v) ? SAW_OBJECT : SAW_DOUBLE; }

// Names, objects and the structures of methods have fixed addresses, so the IR of a program, which contains some of them, is the same
// in each run.
static void *take(size_t size) {
  static char *at, *end;
  if (!at) {
    const size_t all = heap_size;
    void *wanted = reinterpret_cast<void *>(heap_start), *got = mmap(wanted, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) perror("tinyvm: mmap"), exit(1);
    at = static_cast<char *>(got), end = at + all;
  }
  size = (size + 15) & ~size_t(15);
  if (size > size_t(end - at)) fprintf(stderr, "tinyvm: the heap is full\n"), exit(1);
  void *p = at;
  at += size;
  return p;
}

const char *keep(const std::string &s) {
  static std::map<std::string, const char *> kept;
  const char *&p = kept[s];
  if (!p) p = strcpy(static_cast<char *>(take(s.size() + 1)), s.c_str());
  return p;
}

int Class::find(const char *field) const {
  for (size_t i = 0; i < fields.size(); i++)
    if (fields[i] == field) return i; // each name is stored once
  return -1;
}

const Class *class_named(const char *name) {
  for (const Class *c : classes)
    if (c->name == name) return c;
  return nullptr;
}

const Class *class_of(const Object *o) { return class_named(o->name); }

Object *allocate(const Class *c) {
  if (serving) return made(c);
  Object *o = static_cast<Object *>(take(fields_at + sizeof(Value) * c->fields.size()));
  o->name = c->name;
  o->lock = 0, o->count = c->fields.size();
  return o; // its fields are null: mmap's memory is zero
}

void mark_card(Value object) {
  if (serving) marked(object);
  else tinyvm_cards[card_of(object)] = 1;
}

// An int result that is too large becomes a double. Operands other than numbers are an error.
Value arithmetic(Op op, Value a, Value b) {
  if (op == EQ) {
    if (is_number(a) && is_number(b)) return box_int(number(a) == number(b));
    return box_int(a == b);
  }
  if (!is_number(a) || !is_number(b)) return trap;
  int32_t x = a, y = b, z;
  bool ints = is_int(a) && is_int(b);
  switch (op) {
  case ADD: return ints && !__builtin_add_overflow(x, y, &z) ? box_int(z) : box_double(number(a) + number(b));
  case SUB: return ints && !__builtin_sub_overflow(x, y, &z) ? box_int(z) : box_double(number(a) - number(b));
  case MUL: return ints && !__builtin_mul_overflow(x, y, &z) ? box_int(z) : box_double(number(a) * number(b));
  case DIV: return box_double(number(a) / number(b));
  case LT: return box_int(number(a) < number(b));
  case LE: return box_int(number(a) <= number(b));
  default: return trap;
  }
}

bool truth(Value v) { return v != null && (is_ref(v) || number(v) != 0); }

std::string text(Value v) {
  if (is_int(v)) return std::to_string(static_cast<int32_t>(v));
  if (v == null) return "null";
  if (is_ref(v)) return std::string("a ") + object(v)->name;
  if (std::isnan(unbox_double(v))) return "nan";
  char digits[40];
  snprintf(digits, sizeof digits, "%.17g", unbox_double(v));
  return digits;
}

void print(Value v) {
  std::string line = text(v) + "\n";
  if (serving) emit(line);
  else fputs(line.c_str(), stdout);
}

Value stop(const std::string &why) {
  if (!tinyvm_stopped) snprintf(tinyvm_why, sizeof tinyvm_why, "%s", why.c_str());
  tinyvm_stopped = 1;
  return null;
}

} // namespace tinyvm

using namespace tinyvm;

uint64_t tinyvm_arithmetic(uint64_t op, uint64_t a, uint64_t b) { return arithmetic(static_cast<Op>(op), a, b); }
uint64_t tinyvm_truth(uint64_t v) { return truth(v); }
Object *tinyvm_new(const Class *c) { return allocate(c); }
void tinyvm_print(uint64_t v) { print(v); }

uint64_t tinyvm_getfield(uint64_t v, const char *name) {
  Object *o = object(v);
  int i = o ? class_of(o)->find(name) : -1;
  return i < 0 ? trap : o->fields[i];
}

uint64_t tinyvm_putfield(uint64_t v, const char *name, uint64_t value) {
  Object *o = object(v);
  int i = o ? class_of(o)->find(name) : -1;
  if (i < 0) return trap;
  o->fields[i] = value;
  mark_card(v);
  return null;
}
