// Deoptimization: reads the record of the call that exits (LLVM's stack map, version 3), rebuilds the frames that the bundle describes,
// allocates virtual objects, and resumes the interpreter. A VM must do this itself; reframe does the same from outside, without this file.
#include "simple.h"
#include "vm.h"

#include <cstdio>
#include <cstring>
#include <elf.h>
#include <map>
#include <unistd.h>

namespace tinyvm {

long exits_taken = 0;

namespace {

enum { REGISTER = 1, DIRECT = 2, INDIRECT = 3, CONSTANT = 4, CONSTANT_INDEX = 5 };

struct Location {
  uint8_t kind;
  uint16_t size, reg;
  int64_t value; // offset, or the constant
};

struct Record {
  uint64_t id;
  std::vector<Location> locations;
};

std::map<uint64_t, Record> records; // by the return address of their calls

// Reads little-endian numbers one after the other.
struct Cursor {
  const char *base;
  size_t at;
  template <typename T> T next() {
    T v;
    memcpy(&v, base + at, sizeof v);
    at += sizeof v;
    return v;
  }
  void align() { at = (at + 7) & ~size_t(7); }
};

void read_records(const char *section, uint64_t function) { // each of our objects has one
  Cursor c{section, 4};
  uint32_t functions = c.next<uint32_t>(), constants = c.next<uint32_t>(), count = c.next<uint32_t>();
  c.at += 24 * functions;
  std::vector<int64_t> large;
  for (uint32_t i = 0; i < constants; i++) large.push_back(c.next<int64_t>());
  for (uint32_t i = 0; i < count; i++) {
    Record r{c.next<uint64_t>(), {}};
    uint64_t offset = c.next<uint32_t>();
    c.next<uint16_t>();
    for (int n = c.next<uint16_t>(); n > 0; n--) {
      Location l{};
      l.kind = c.next<uint8_t>(), c.next<uint8_t>();
      l.size = c.next<uint16_t>(), l.reg = c.next<uint16_t>(), c.next<uint16_t>();
      l.value = c.next<int32_t>();
      if (l.kind == CONSTANT_INDEX) l.value = large[l.value];
      r.locations.push_back(l);
    }
    c.align();
    c.next<uint16_t>();
    c.at += 4 * c.next<uint16_t>();
    c.align();
    records[function + offset] = r;
  }
}

} // namespace

// Finds the stack map in the object that LLVM made. It is read before linking, when it does not contain the address of the function yet.
bool register_records(const char *elf, size_t size, uint64_t function) {
  if (size < sizeof(Elf64_Ehdr)) return false;
  auto *header = reinterpret_cast<const Elf64_Ehdr *>(elf);
  auto *sections = reinterpret_cast<const Elf64_Shdr *>(elf + header->e_shoff);
  const char *names = elf + sections[header->e_shstrndx].sh_offset;
  for (int i = 0; i < header->e_shnum; i++)
    if (!strcmp(names + sections[i].sh_name, ".llvm_stackmaps")) read_records(elf + sections[i].sh_offset, function);
  return true;
}

namespace {

// The registers that enter.S pushes; above them is the stack of the code that exited.
struct Left {
  uint64_t r15, r14, r13, r12, rbp, rbx, return_address;
};

uint64_t read(const Location &l, const Left &left, uint64_t rsp) {
  if (l.kind == CONSTANT || l.kind == CONSTANT_INDEX) return l.value;
  uint64_t base = 0; // registers by their DWARF numbers: callee-saved ones, and rsp
  switch (l.reg) {
  case 3: base = left.rbx; break;
  case 6: base = left.rbp; break;
  case 7: base = rsp; break;
  case 12: base = left.r12; break;
  case 13: base = left.r13; break;
  case 14: base = left.r14; break;
  case 15: base = left.r15; break;
  default: fprintf(stderr, "tinyvm: a value is in DWARF register %d, which calls overwrite\n", l.reg), _Exit(70);
  }
  if (l.kind == REGISTER) return base;
  base += l.value;
  if (l.kind == DIRECT) return base;
  uint64_t v = 0;
  memcpy(&v, reinterpret_cast<void *>(base), l.size < 8 ? l.size : 8);
  return v;
}

struct Decoder {
  const Left &left;
  uint64_t rsp; // in the calling code, after its call
  const Record &record;
  size_t at = 3, end; // after the calling convention, the flags, and the number of operands
  const char *kinds;  // 'i' or 'd' for each operand that is neither a box nor a reference

  struct Item {
    What what;
    int how, index, of; // frame or object
    uint64_t bits;
  };
  std::vector<Item> items;
  std::vector<Frame> frames;
  std::vector<int> modes;
  std::map<int, Object *> objects;
  int64_t depth = 0;

  uint64_t next() {
    if (at >= end) fprintf(stderr, "tinyvm: a bundle ends too early\n"), _Exit(70);
    return read(record.locations[at++], left, rsp);
  }

  Value value(const Item &i) {
    double d;
    switch (i.how) {
    case TYPED:
      if (*kinds++ == 'i') return box_int(i.bits);
      memcpy(&d, &i.bits, sizeof d);
      return box_double(d);
    case AS_BOXED:
    case AS_REF: return i.bits;
    case AS_VIRTUAL: return reinterpret_cast<Value>(objects[i.bits]);
    default: return null;
    }
  }

  void parse() {
    int object = -1;
    while (at < end) {
      uint64_t tag = next();
      Item i{static_cast<What>(tag >> 32), static_cast<int>(tag >> 24 & 0xff), static_cast<int>(tag & 0xffffff), static_cast<int>(frames.size()) - 1, next()};
      if (i.what == FRAME) {
        Frame f{};
        for (Method *m : methods)
          if (reinterpret_cast<uint64_t>(m->name) == i.bits) f.method = m;
        f.position = next();
        f.locals.assign(f.method->locals, null);
        frames.push_back(f), modes.push_back(i.index);
      } else if (i.what == OBJECT) {
        object = i.index;
        objects[object] = allocate(class_named(reinterpret_cast<const char *>(i.bits)));
        next(); // the number of fields: each describes its own type
      } else if (i.what == EXTRA) {
        depth = i.bits;
      } else {
        if (i.what == FIELD) i.of = object;
        items.push_back(i);
      }
    }
  }

  // Now all objects exist, so places may refer to objects described later.
  void fill() {
    for (const Item &i : items) {
      Value v = value(i);
      if (i.what == FIELD) {
        Object *o = objects[i.of];
        int field = (i.index - fields_at) / sizeof(Value);
        if (field < o->count) o->fields[field] = v;
        continue;
      }
      Frame &f = frames[i.of];
      if (i.what == LOCAL) f.locals[i.index] = v;
      if (i.what == LOCAL && i.how == AS_DEAD) f.dead |= 1ull << i.index;
      if (i.what == STACK && f.stack.size() <= size_t(i.index)) f.stack.resize(i.index + 1, null);
      if (i.what == STACK) f.stack[i.index] = v;
      if (i.what == MONITOR) f.monitors.push_back(v);
      if (i.what == MONITOR && i.index == 1 && object(v)) object(v)->lock++; // no code took it while the object was not visible
    }
    for (size_t n = 0; n < frames.size(); n++) {
      Frame &f = frames[n];
      const Method *m = f.method;
      if (modes[n] == AFTER) f.position++;
      if (size_t(f.position) >= m->code.size() || m->depth[f.position] < 0) f.position = 0; // a wrong bundle
      // If the bundle does not match the position, as with some of the planted faults, the VM continues with what it has, as most VMs do:
      // reframe must find such faults.
      const Instruction &i = m->code[f.position];
      bool waits = f.waits = modes[n] == IN_CALL && i.op == CALL;
      f.stack.resize(m->depth[f.position] - (waits ? i.callee->args : 0), null);
      f.monitors.resize(m->held[f.position], null);
    }
  }
};

// The frames in the bundle of the call that returns to that address.
Decoder decode(uint64_t return_address, uint64_t rsp, const Left &left) {
  auto found = records.find(return_address);
  if (found == records.end()) fprintf(stderr, "tinyvm: no record at %#lx\n", static_cast<long>(return_address)), _Exit(70);
  const Record &r = found->second;
  const std::string *kinds = kinds_of(r.id);
  if (!kinds) fprintf(stderr, "tinyvm: record %ld is of no site\n", static_cast<long>(r.id)), _Exit(70);
  Decoder d{left, rsp, r, 3, 3 + size_t(r.locations[2].value), kinds->c_str(), {}, {}, {}, {}, 0};
  d.parse();
  d.fill();
  return d;
}

} // namespace

} // namespace tinyvm

using namespace tinyvm;

extern "C" uint64_t tinyvm_leave(const Left *left) {
  if (++exits_taken == options.stand) puts("ready"), fflush(stdout), sleep(600);
  Decoder d = decode(left->return_address, reinterpret_cast<uint64_t>(left + 1), *left);
  if (options.backtrace) log_backtrace(d.frames, d.depth, nullptr);
  if (options.log_exits) log_exit(d.frames, d.depth, nullptr);
  Method *m = d.frames[0].method;
  if (++m->exits % 8 == 0) { // after so many failed speculations the method is compiled again, with what was seen since
    m->compiled = nullptr;
    m->refused = m->versions >= 4;
  }
  return interpret(std::move(d.frames), d.depth);
}

// A call by compiled code. The frames that wait for it are rebuilt only for the log, which shows whether the bundle is right. All its
// values are on the stack, and the frame address is two words below rsp before the call.
extern "C" uint64_t tinyvm_call(Method *m, int64_t depth, const uint64_t *args) {
  if (options.log_exits || options.backtrace) {
    Decoder d = decode(reinterpret_cast<uint64_t>(__builtin_return_address(0)), reinterpret_cast<uint64_t>(__builtin_frame_address(0)) + 16, Left{});
    if (options.log_exits) log_exit(d.frames, d.depth, m);
    if (options.backtrace) log_backtrace(d.frames, d.depth, m);
    Activation a(&d.frames, m);
    return call(m, depth, args);
  }
  return call(m, depth, args);
}
