// tinyvm: a small virtual machine whose JIT can be debugged from outside. This file has its values, objects and methods.
//
// The parts, in the order in which they are best read:
//
//   vm.h, vm.cpp   values in NaN boxes, objects, and what an instruction does with them
//   parse.cpp      programs are text (.tvm); what is known of each position before it runs
//   interp.cpp     the plain interpreter, which is what a program means; it also takes notes for the compiler
//   compile.cpp    the optimizing compiler: byte code in, LLVM IR as text out, with a deopt bundle wherever a frame may be asked for
//   state.h        what the compiler knows at a place: frames whose values are names in the IR
//   bundle.cpp     what a deopt bundle says of those frames, in the encoding `simple` (simple.h)
//   jit.cpp        LLVM: passes, ORC, registration with debuggers, and how a module describes itself
//   deopt.cpp      the way back: reads the stack map, rebuilds the frames, and lets the interpreter go on
//
// Beside the machine itself: serve.cpp is the plain interpreter for others, which goes on in frames of another process, by reframe's protocol; and in
// testing/ are the log of all frames that tests hold others against, and the faults that they plant.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tinyvm {

// A value is 64 bits. Top 16 bits 0xffff: an int in the low 32; top 16 bits 0: a reference (0 is null); else a double, whose bits are
// those of the value minus 1 << 48.
using Value = uint64_t;
constexpr Value null = 0, int_tag = 0xffffull << 48, double_offset = 1ull << 48;
constexpr Value trap = 0xfffeull << 48; // no value at all: what an instruction answers that cannot be done

Value box_int(int32_t i);
Value box_double(double d);
double unbox_double(Value v);
inline bool is_int(Value v) { return v >> 48 == 0xffff; }
inline bool is_ref(Value v) { return v >> 48 == 0; }
inline bool is_number(Value v) { return !is_ref(v); }

struct Class {
  const char *name;
  std::vector<const char *> fields;
  int find(const char *field) const; // -1 where there is none of that name
};

// An object. Its first word is the address of its class's name, so that even who knows nothing of the VM sees what it is. The heap never
// moves and never frees.
struct Object {
  const char *name;
  int32_t lock, count; // how often its monitor is held, and how many fields it has
  Value fields[];
};
constexpr int fields_at = 16;
Object *object(Value v);      // nullptr for null and what is no reference
Value reference(Object *o);   // the value that leads to it

enum Op { CONST, GET, SET, DUP, POP, ADD, SUB, MUL, DIV, LT, LE, EQ, JUMP, IF, NEW, GETFIELD, PUTFIELD, CALL, ENTER, EXIT, PRINT, RETURN };

// What the interpreter saw at an instruction: the compiler bets on more of the same.
enum { SAW_INT = 1, SAW_DOUBLE = 2, SAW_NULL = 4, SAW_OBJECT = 8 };
struct Notes {
  uint8_t a = 0, b = 0, result = 0;  // types of the operands, of the result
  const Class *cls = nullptr;        // of the object, where it always was the same
  bool classes = false;              // it was not
  uint32_t taken = 0, not_taken = 0; // of an IF
};
uint8_t saw(Value v);

struct Method;
struct Instruction {
  Op op;
  int a = 0;                   // number of a local, target of a jump
  Value value = null;          // of a CONST
  const char *name = nullptr;  // of a field
  const Class *cls = nullptr;  // of NEW
  Method *callee = nullptr;    // of CALL
  Notes notes;
};

constexpr int max_locals = 64, max_depth = 200;

struct Method {
  const char *name;
  int args = 0, locals = 0;
  std::vector<Instruction> code;
  // Of each position: how deep the operand stack is and how many monitors are held (-1: never reached), which locals may still be read,
  // whether a backward jump leads to it, and what the interpreter saw in its locals then.
  std::vector<int> depth, held;
  std::vector<uint64_t> live;
  std::vector<bool> header;
  std::vector<std::vector<uint8_t>> types;
  // The optimizing tier.
  using Code = Value (*)(int64_t depth, const Value *args);
  Code compiled = nullptr;
  int interpreted = 0, exits = 0, versions = 0;
  bool refused = false; // is never compiled (again)
};

// A frame of the interpreter. Of a frame that waits for a call, position is that of the call and the arguments are no longer on the stack.
struct Frame {
  Method *method;
  int position = 0;
  std::vector<Value> locals, stack, monitors;
  uint64_t dead = 0; // locals of which a bundle says that nobody will read them, and that nothing has set since
};

struct Options {
  bool interpret = false;
  int jit = 3;               // a method is compiled once it was interpreted that often
  int opt = 2;
  const char *log = nullptr, *log_exits = nullptr; // files
  long log_limit = 100000;                         // lines of each
  const char *dump = nullptr;
  bool exits = false;
  long stand = 0; // at which exit it waits
  bool entries = false;
  std::string fault;
};
extern Options options;
bool fault(const char *name); // is this fault planted?

extern std::vector<Class *> classes;
extern std::vector<Method *> methods;
const Class *class_of(const Object *o);
const Class *class_named(const char *name);

void parse(const char *file);
const char *keep(const std::string &s); // the one copy of a name, which stays

// What an instruction comes to, trap where it is an error.
Value arithmetic(Op op, Value a, Value b);
bool truth(Value v);
Object *allocate(const Class *c);
std::string text(Value v); // as it is printed
void print(Value v);
const char *name_of(Op op);

// serve.cpp: while it serves, references are addresses in another process, of whose objects there are copies here. Whoever changes one says so.
extern bool serving;
Object *fetched(Value v);
Object *made(const Class *c);
Value address_of(const Object *o);
void noted(const void *word, size_t size);
void stepped(const std::vector<Frame> &frames); // the next instruction is about to run
void emit(const std::string &text);
void serve();
inline void stored(const void *word, size_t size) {
  if (serving) noted(word, size);
}

// Ends the program in order: whoever made a call looks at tinyvm_stopped behind it, and returns.
Value stop(const std::string &why);

// Runs the last frame of a stack, then its callers, until the first returns. depth is how many frames there are under the first.
Value interpret(std::vector<Frame> frames, int64_t depth, bool returned = false, Value result = null);
Value call(Method *m, int64_t depth, const Value *args);

// testing/log.cpp: the frames that the interpreter comes to, and those that were rebuilt.
void log_arrival(const std::vector<Frame> &frames, int64_t depth);
void log_exit(const std::vector<Frame> &frames, int64_t depth, const Method *callee);

// Translates a method to IR; `kinds` are what deopt.cpp needs to know of values in the bundles (see bundle.cpp).
struct Translation {
  std::string text, symbol;
};
bool translate(Method *m, Translation &out);
void remember_kinds(uint64_t id, const std::string &kinds);
const std::string *kinds_of(uint64_t id);

void start_jit();
bool compile(Method *m);
extern long exits_taken;

// deopt.cpp
bool register_records(const char *elf, size_t size, uint64_t function);

} // namespace tinyvm

// What compiled code refers to by name.
extern "C" {
extern long tinyvm_fuel;    // is spent by backward jumps and by calls; at 0 the program ends
extern long tinyvm_stopped; // the program ends: return
extern char tinyvm_why[128]; // and says why: text, and zeros
uint64_t tinyvm_call(tinyvm::Method *m, int64_t depth, const uint64_t *args);
uint64_t tinyvm_arithmetic(uint64_t op, uint64_t a, uint64_t b);
uint64_t tinyvm_truth(uint64_t v);
uint64_t tinyvm_getfield(uint64_t object, const char *name);
uint64_t tinyvm_putfield(uint64_t object, const char *name, uint64_t value);
tinyvm::Object *tinyvm_new(const tinyvm::Class *c);
void tinyvm_print(uint64_t v);
uint64_t tinyvm_enter(tinyvm::Method::Code code, int64_t depth, const uint64_t *args); // calls compiled code, which may leave
}
