// tinyvm: a small virtual machine whose JIT can be debugged from outside. This file has its values, objects and methods.
//
// The parts, in the order to read them:
//
//   vm.h, vm.cpp   values in NaN boxes, objects, and the effects of instructions on them
//   parse.cpp      parses programs (.tvm), and computes the properties of each position
//   interp.cpp     the plain interpreter, which defines the meaning of a program; it also profiles for the compiler
//   compile.cpp    the optimizing compiler: byte code in, LLVM IR as text out, with a deopt bundle wherever a frame may be needed
//   state.h        the compiler's state at a place: frames whose values are names in the IR
//   bundle.cpp     the description of those frames in a deopt bundle, in the encoding `simple` (simple.h)
//   jit.cpp        LLVM: passes, ORC, registration with debuggers, and the self-description of a module
//   deopt.cpp      deoptimization: reads the stack map, rebuilds the frames, and resumes the interpreter
//
// Beside the machine itself: serve.cpp is the plain interpreter as a server of reframe's protocol, which runs frames of another process; testing/ has
// the log of all frames, with which tests compare others, and the planted faults.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tinyvm {

// A value is 64 bits. Top 16 bits 0xffff: an int in the low 32; top 16 bits 0: a reference (0 is null); else a double, whose bits are
// those of the value minus 1 << 48.
using Value = uint64_t;
constexpr Value null = 0, int_tag = 0xffffull << 48, double_offset = 1ull << 48;
constexpr Value trap = 0xfffeull << 48; // no value: the result of an impossible instruction

Value box_int(int32_t i);
Value box_double(double d);
double unbox_double(Value v);
inline bool is_int(Value v) { return v >> 48 == 0xffff; }
inline bool is_ref(Value v) { return v >> 48 == 0; }
inline bool is_number(Value v) { return !is_ref(v); }

struct Class {
  const char *name;
  std::vector<const char *> fields;
  int find(const char *field) const; // -1 if there is none of that name
};

// An object. Its first word is the address of its class's name, so that a debugger can show the class. The heap neither moves nor frees objects.
struct Object {
  const char *name;
  int32_t lock, count; // the lock count of its monitor, and the number of fields
  Value fields[];
};
constexpr int fields_at = 16;
constexpr Value heap_start = 0x100000000000, heap_size = 1 << 30;
inline uint64_t card_of(Value object) { return object >> 9 & 0xff; } // of tinyvm_cards
void mark_card(Value object); // the write barrier: an object's field was stored to
Object *object(Value v);      // nullptr for null and values other than references
Value reference(Object *o);   // the reference to it

enum Op { CONST, GET, SET, DUP, POP, ADD, SUB, MUL, DIV, LT, LE, EQ, JUMP, IF, NEW, GETFIELD, PUTFIELD, CALL, ENTER, EXIT, PRINT, RETURN };

// What the interpreter saw at an instruction: the compiler speculates that it stays so.
enum { SAW_INT = 1, SAW_DOUBLE = 2, SAW_NULL = 4, SAW_OBJECT = 8 };
struct Notes {
  uint8_t a = 0, b = 0, result = 0;  // types of the operands, of the result
  const Class *cls = nullptr;        // of the object, if it was always the same
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
  // For each position: the depth of the operand stack and the number of held monitors (-1: never reached), the live locals, whether a backward jump
  // leads to it, and what the interpreter saw in its locals then.
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

// A frame of the interpreter. If a frame waits for a call, position is that of the call, and the arguments are no longer on the stack.
struct Frame {
  Method *method;
  int position = 0;
  std::vector<Value> locals, stack, monitors;
  uint64_t dead = 0; // locals that are dead according to a bundle, and have not been set since
  bool waits = false; // for the call at position
};

struct Options {
  bool interpret = false;
  int jit = 3;               // a method is compiled after this number of interpretations
  int opt = 2;
  const char *log = nullptr, *log_exits = nullptr, *backtrace = nullptr; // files
  long log_limit = 100000;                         // lines of each
  const char *dump = nullptr;
  bool exits = false;
  long stand = 0; // the exit at which it waits
  bool entries = false;
  std::string fault;
  bool right_entries = false; // the fault spares the records of --entries
};
extern Options options;
bool fault(const char *name); // reports whether this fault is planted

extern std::vector<Class *> classes;
extern std::vector<Method *> methods;
const Class *class_of(const Object *o);
const Class *class_named(const char *name);

void parse(const char *file);
const char *keep(const std::string &s); // the only copy of a name, which is permanent

// The result of an instruction, trap for an error.
Value arithmetic(Op op, Value a, Value b);
bool truth(Value v);
Object *allocate(const Class *c);
std::string text(Value v); // in its printed form
void print(Value v);
const char *name_of(Op op);

// serve.cpp: while it serves, references are addresses in another process, whose objects have copies here. Code that changes one must report it.
extern bool serving;
Object *fetched(Value v);
Object *made(const Class *c);
Value address_of(const Object *o);
void noted(const void *word, size_t size);
void marked(Value object); // its card
void stepped(const std::vector<Frame> &frames); // the next instruction is about to run
void emit(const std::string &text);
void serve();
inline void stored(const void *word, size_t size) {
  if (serving) noted(word, size);
}

// Ends the program orderly: callers check tinyvm_stopped after each call, and return.
Value stop(const std::string &why);

// Runs the last frame of a stack, then its callers, until the first returns. depth is the number of frames under the first.
Value interpret(std::vector<Frame> frames, int64_t depth, bool returned = false, Value result = null);
Value call(Method *m, int64_t depth, const Value *args);

// testing/log.cpp: the frames that the interpreter reaches, and the rebuilt ones.
void log_arrival(const std::vector<Frame> &frames, int64_t depth);
void log_exit(const std::vector<Frame> &frames, int64_t depth, const Method *callee);
// The activations of both tiers, for --backtrace. An activation ends when its object does. callee is the method that compiled code has called.
struct Activation {
  explicit Activation(const std::vector<Frame> *frames, const Method *callee = nullptr);
  ~Activation();
};
void log_backtrace(const std::vector<Frame> &exit, int64_t depth, const Method *callee);

// Translates a method to IR; `kinds` describes the values in the bundles for deopt.cpp (see bundle.cpp).
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

// Symbols of compiled code.
extern "C" {
extern long tinyvm_fuel;    // consumed by backward jumps and by calls; at 0 the program ends
extern long tinyvm_stopped; // the program ends: return
extern char tinyvm_why[128]; // with a message: text, and zeros
extern uint8_t tinyvm_cards[256]; // a byte for each 512 bytes of the heap, modulo 128 KiB: 1 if a field there was stored to, as a collector would need it
uint64_t tinyvm_call(tinyvm::Method *m, int64_t depth, const uint64_t *args);
uint64_t tinyvm_arithmetic(uint64_t op, uint64_t a, uint64_t b);
uint64_t tinyvm_truth(uint64_t v);
uint64_t tinyvm_getfield(uint64_t object, const char *name);
uint64_t tinyvm_putfield(uint64_t object, const char *name, uint64_t value);
tinyvm::Object *tinyvm_new(const tinyvm::Class *c);
void tinyvm_print(uint64_t v);
// Runs the interpreter with the address of its frames in a callee-saved register, rbx, where debuggers find it (interpreter.star).
uint64_t tinyvm_interpret(std::vector<tinyvm::Frame> *frames, int64_t depth, bool returned, uint64_t result);
uint64_t tinyvm_enter(tinyvm::Method::Code code, int64_t depth, const uint64_t *args); // calls compiled code, which may exit
}
