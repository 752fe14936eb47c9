// The compiler's state at a point of the code: the frames, inlined ones on top of their callers, and the virtual objects, which only these
// frames can see and which are not allocated. Values are names in the IR, or constants.
#pragma once
#include "simple.h"
#include "vm.h"

#include <map>

namespace tinyvm {

struct Val {
  enum Kind { DEAD, BOXED, INT, DOUBLE, REF, VIRTUAL } kind = DEAD;
  std::string name = {};      // %local2, or a constant as IR writes it
  int object = -1;            // the id of a virtual object
  const Class *cls = nullptr; // for a reference: it is not null, and has this class
  bool constant() const { return name[0] != '%'; }
  bool operator==(const Val &o) const { return kind == o.kind && name == o.name && object == o.object; }
};

struct VFrame {
  Method *method;
  int position;
  std::vector<Val> locals, stack, monitors;
  std::map<int, Val> before; // the values of locals before they were last set (only for a fault)
};

struct VObject {
  const Class *cls;
  std::vector<Val> fields;
  std::map<int, Val> before = {}; // as in VFrame
};

// A place that holds a value: in a frame, or a field of a virtual object.
struct Place {
  enum Where { LOCAL, STACK, MONITOR, FIELD } where;
  int of, index; // frame or object
};

struct State {
  std::vector<VFrame> frames;
  std::map<int, VObject> objects;

  Val &operator[](const Place &p);
  std::vector<Place> places() const; // those of frames, then those of objects by their ids
  void forget_dead(uint64_t live);   // locals of the last frame, and unreachable objects
  int locks(int object) const;       // the lock count of a virtual object's monitor
  void replace(Val old, Val now);
};

// The description of a state in a bundle: its frames, without dead locals, and the virtual objects that these refer to.
struct Described {
  struct Scope {
    const VFrame *of;
    Mode mode;
    int position;
    std::vector<Val> locals, stack, monitors;
    size_t left_out = 0; // operands at the bottom of the stack (only for a fault)
  };
  std::vector<Scope> frames;
  std::vector<std::pair<int, VObject>> objects;
};
void spoil(Described &d); // testing/faults.cpp

// The operands of a deopt bundle that describes s, whose last frame is at `position`. kinds becomes one letter for each value that has its IR
// type's form: 'i' or 'd'. A stack map does not contain the types of operands, and a constant 0 may have either type.
std::string bundle(const State &s, Mode mode, int position, std::string &kinds, bool may_be_wrong = true);

extern const char *const ref_type; // LLVM 14's pointers have types: all of ours lead to i64
extern const char *const ptr_type;
extern const std::string byte_type;

} // namespace tinyvm
