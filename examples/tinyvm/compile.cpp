// The optimizing compiler. It reads a method's byte code once, in the order of positions; the values of frames are names in the IR (state.h). It
// speculates on what the interpreter saw. If a speculation fails, or the interpreter saw nothing, the code exits through
// llvm.experimental.deoptimize with a bundle that describes the frames. Calls are inlined up to four deep. An object is allocated only when other
// code may see it; until then its fields are values, and its monitor is a count.
#include "state.h"

#include <cinttypes>
#include <cstring>
#include <deque>
#include <set>

namespace tinyvm {

namespace {

struct Phi {
  std::string name, type, from;
};

struct Block {
  std::string label, text;
  std::vector<Phi> phis;
  bool dead = false; // nobody jumps here
};

struct Edge { // a block that ends where another begins
  Block *from;
  State state;
};

struct Wanted { // from the predecessors of a block: a value for a phi
  Place place;
  Val::Kind kind;
};

struct Header { // of a loop: backward jumps add to its phis
  Block *block;
  State state;
  std::vector<Wanted> wanted;
};

struct Body { // of a method, compiled or inlined
  Method *method;
  std::string path; // the path to this place: the position of each call
  std::map<int, std::vector<Edge>> in;
  std::map<int, Header> headers;
  std::vector<Edge> returns;
};

struct Dead_end {}; // code after this is unreachable
struct Again {};    // an assumption about a loop is wrong

constexpr int max_inlined = 5, max_callee = 120, max_size = 3000;
constexpr uint64_t count_shift = 32;

std::string hex(uint64_t v) {
  char s[32];
  snprintf(s, sizeof s, "0x%016" PRIX64, v);
  return s;
}

std::string decimal(int64_t v) { return std::to_string(v); }
std::string address(const void *p) { return decimal(reinterpret_cast<int64_t>(p)); }
Val int_constant(int32_t i) { return {Val::INT, decimal(i)}; }
Val null_constant() { return {Val::REF, "null"}; }

Val constant(Value v) {
  if (is_int(v)) return int_constant(static_cast<int32_t>(v));
  return v == null ? null_constant() : Val{Val::DOUBLE, hex(v - double_offset)};
}

const char *type_of(Val::Kind k) { return k == Val::INT ? "i32" : k == Val::DOUBLE ? "double" : k == Val::REF ? ref_type : "i64"; }

// The kind of value to expect if only these were seen.
Val::Kind expected(uint8_t seen) {
  if (seen == SAW_INT) return Val::INT;
  if (seen == SAW_DOUBLE) return Val::DOUBLE;
  return seen && !(seen & (SAW_INT | SAW_DOUBLE)) ? Val::REF : Val::BOXED;
}

uint64_t next_site = 1;
std::map<uint64_t, std::string> kinds_by_site;

struct Compiler {
  Method *root;
  std::deque<Block> blocks;
  Block *at = nullptr; // the block to which code is added
  State s;
  std::set<std::string> used;
  std::map<int, Val> made; // the current form of virtual objects
  int objects = 0, size = 0;
  std::set<std::string> &materialized, &boxed; // loops that no virtual object enters; loops whose fields are boxed

  Compiler(Method *m, std::set<std::string> &materialized, std::set<std::string> &boxed) : root(m), materialized(materialized), boxed(boxed) {}

  // Names, blocks, instructions.

  std::string fresh(const std::string &name) {
    std::string n = name;
    for (int i = 1; !used.insert(n).second; i++) n = name + "." + decimal(i);
    return n;
  }
  Block *block(const std::string &label) {
    blocks.push_back({fresh(label), "", {}, false});
    return &blocks.back();
  }
  void emit(const std::string &line) { at->text += "  " + line + "\n"; }
  std::string value(const std::string &name, const std::string &what) {
    std::string n = "%" + fresh(name);
    emit(n + " = " + what);
    return n;
  }
  void jump(Block *to) { emit("br label %" + to->label); }
  std::string pointer(const std::string &type, const std::string &base, int word) {
    return value("at", "getelementptr i64, " + type + " " + base + ", i64 " + decimal(word));
  }
  std::string load(const std::string &name, const std::string &type, const std::string &p) { return value(name, "load i64, " + type + " " + p); }
  void store(const std::string &v, const std::string &type, const std::string &p) { emit("store i64 " + v + ", " + type + " " + p); }
  std::string global(const char *name) { return std::string("@") + name; }

  // Ways out.

  std::string site(Mode mode, int position) {
    std::string kinds, operands = bundle(s, mode, position, kinds), id = decimal(next_site);
    remember_kinds(next_site++, kinds);
    return "\"statepoint-id\"=\"" + id + "\" [ \"deopt\"(" + operands + ") ]";
  }
  void exit_here(Mode mode, int position) {
    std::string v = value("left", "call i64 (...) @llvm.experimental.deoptimize.i64() " + site(mode, position));
    emit("ret i64 " + v);
  }
  [[noreturn]] void leave(Mode mode, int position) {
    exit_here(mode, position);
    throw Dead_end();
  }
  void guard(const std::string &condition, Mode mode, int position) {
    Block *out = block("exit"), *on = block("on");
    emit("br i1 " + condition + ", label %" + on->label + ", label %" + out->label);
    at = out;
    exit_here(mode, position);
    at = on;
  }

  // Values in other forms. A fact that a guard has checked holds for all places with the value.

  Val refine(Val old, Val now) {
    s.replace(old, now);
    return now;
  }
  std::string top_bits(const Val &v) { return value("top", "lshr i64 " + v.name + ", 48"); }

  Val as(Val v, Val::Kind kind, Mode mode, int position) {
    if (v.kind == kind) return v;
    if (kind == Val::BOXED) return box(v);
    if (v.kind == Val::VIRTUAL && kind == Val::REF) return materialize(v.object);
    if (v.kind != Val::BOXED) leave(mode, position); // it never is
    if (kind == Val::INT) {
      guard(value("is", "icmp eq i64 " + top_bits(v) + ", 65535"), mode, position);
      return refine(v, {Val::INT, value("int", "trunc i64 " + v.name + " to i32")});
    }
    if (kind == Val::DOUBLE) {
      std::string off = value("off", "sub i64 " + top_bits(v) + ", 1");
      guard(value("is", "icmp ult i64 " + off + ", 65533"), mode, position);
      std::string bits = value("bits", "sub i64 " + v.name + ", " + decimal(double_offset));
      return refine(v, {Val::DOUBLE, value("double", "bitcast i64 " + bits + " to double")});
    }
    guard(value("is", "icmp eq i64 " + top_bits(v) + ", 0"), mode, position);
    return refine(v, {Val::REF, value("ref", "inttoptr i64 " + v.name + " to " + ref_type)});
  }

  Val box(Val v) {
    switch (v.kind) {
    case Val::INT:
      if (v.constant()) return {Val::BOXED, decimal(box_int(atoi(v.name.c_str())))};
      return {Val::BOXED, value("box", "or i64 " + value("wide", "zext i32 " + v.name + " to i64") + ", " + decimal(int_tag))};
    case Val::DOUBLE: {
      if (v.constant()) return {Val::BOXED, decimal(strtoull(v.name.c_str(), nullptr, 16) + double_offset)};
      std::string nan = value("nan", "fcmp uno double " + v.name + ", " + v.name);
      std::string bits = value("bits", "bitcast double " + v.name + " to i64");
      std::string one = value("bits", "select i1 " + nan + ", i64 " + decimal(0x7ff8000000000000) + ", i64 " + bits);
      return {Val::BOXED, value("box", "add i64 " + one + ", " + decimal(double_offset))};
    }
    case Val::VIRTUAL: return box(materialize(v.object));
    case Val::REF: return {Val::BOXED, v.constant() ? "0" : value("box", std::string("ptrtoint ") + ref_type + " " + v.name + " to i64")};
    default: return v;
    }
  }

  std::string as_double(const Val &v) {
    if (v.kind == Val::DOUBLE) return v.name;
    if (v.constant()) return hex(box_double(atoi(v.name.c_str())) - double_offset);
    return value("double", "sitofp i32 " + v.name + " to double");
  }

  // Allocates a virtual object and all virtual objects that it refers to.
  Val materialize(int id) {
    std::vector<int> ids{id};
    std::set<int> seen{id};
    for (size_t i = 0; i < ids.size(); i++)
      for (const Val &v : s.objects.at(ids[i]).fields)
        if (v.kind == Val::VIRTUAL && seen.insert(v.object).second) ids.push_back(v.object);
    std::vector<int> locks;
    for (int i : ids) locks.push_back(s.locks(i));
    for (int i : ids) {
      const Class *c = s.objects.at(i).cls;
      made[i] = {Val::REF, value("object", std::string("call ") + ref_type + " @tinyvm_new(i64 " + address(c) + ")"), -1, c};
      s.replace({Val::VIRTUAL, "", i}, made[i]);
    }
    for (size_t n = 0; n < ids.size(); n++) {
      const std::vector<Val> &fields = s.objects.at(ids[n]).fields;
      const std::string &p = made[ids[n]].name;
      if (locks[n]) store(decimal(int64_t(fields.size()) << count_shift | locks[n]), ref_type, pointer(ref_type, p, 1));
      for (size_t k = 0; k < fields.size(); k++) store(box(fields[k]).name, ref_type, pointer(ref_type, p, 2 + k));
    }
    for (int i : ids) s.objects.erase(i);
    return made[id];
  }

  // Merging of control flow.

  std::string place_name(const Place &p) {
    if (p.where == Place::FIELD) return "object" + decimal(p.of) + "." + s.objects.at(p.of).cls->fields[p.index];
    const char *const names[] = {"local", "stack", "monitor"};
    std::string inlined = p.of ? std::string(s.frames[p.of].method->name) + "." : "";
    return inlined + names[p.where] + decimal(p.index);
  }

  // Allocates, on each edge, the objects that are not the same virtual object on all edges.
  void agree(std::vector<Edge> &edges, bool none) {
    auto real = [&](Edge &e, int id) {
      at = e.from, s = e.state;
      materialize(id);
      e.from = at, e.state = s;
    };
    for (bool changed = true; changed;) {
      changed = false;
      for (Edge &e : edges)
        for (Edge &other : edges)
          for (auto o = e.state.objects.begin(); o != e.state.objects.end(); ++o)
            if (none || !other.state.objects.count(o->first)) {
              real(e, o->first);
              changed = true;
              break;
            }
      if (changed) continue;
      for (const Place &p : edges[0].state.places()) {
        bool same = true;
        for (Edge &e : edges) same &= e.state[p] == edges[0].state[p];
        if (same) continue;
        for (Edge &e : edges)
          if (e.state[p].kind == Val::VIRTUAL) real(e, e.state[p].object), changed = true;
        if (changed) break;
      }
    }
  }

  // The kind of a phi whose value may be any of these.
  static Val::Kind join(std::vector<Edge> &edges, const Place &p) {
    Val::Kind k = edges[0].state[p].kind;
    for (Edge &e : edges)
      if (e.state[p].kind != k) k = Val::BOXED;
    return k;
  }

  void merge(std::vector<Edge> edges, Body *body, int position, uint64_t live) {
    bool header = body && body->method->header[position];
    std::string key = body ? body->path + decimal(position) : "";
    for (Edge &e : edges) e.state.forget_dead(live);
    agree(edges, header && materialized.count(key));
    int last = edges[0].state.frames.size() - 1;
    std::vector<Wanted> wanted;
    for (const Place &p : edges[0].state.places()) {
      const Val &first = edges[0].state[p];
      if (first.kind == Val::DEAD || first.kind == Val::VIRTUAL) continue; // on all edges, since they agree
      bool same = true, varies = header && (p.where == Place::FIELD || p.of == last);
      for (Edge &e : edges) same &= e.state[p] == first;
      if (same && !varies) continue;
      Val::Kind k = join(edges, p);
      if (varies && p.where == Place::LOCAL) k = expected(body->method->types[position][p.index]);
      if (varies && p.where == Place::FIELD && boxed.count(key)) k = Val::BOXED;
      if (varies && p.where == Place::MONITOR) k = Val::REF;
      wanted.push_back({p, k});
    }
    Block *into = block(header ? "loop" : "join");
    State merged = edges[0].state;
    merged.frames.back().before.clear();
    for (auto &o : merged.objects) o.second.before.clear();
    s = merged;
    for (Wanted &w : wanted) {
      Phi phi{"%" + fresh(place_name(w.place)), type_of(w.kind), ""};
      merged[w.place] = {w.kind, phi.name};
      into->phis.push_back(phi);
    }
    for (const Place &p : merged.places()) // a fact about a reference that holds on only one path is dropped here
      for (Edge &e : edges)
        if (merged[p].cls != e.state[p].cls) merged[p].cls = nullptr;
    bool reached = false;
    for (Edge &e : edges) {
      at = e.from, s = e.state;
      reached |= enter(into, wanted, position);
    }
    into->dead = !reached;
    at = reached ? into : nullptr;
    s = merged;
    if (reached && header) body->headers[position] = {into, merged, wanted};
  }

  // Jumps into a block whose phis take the values of these places; false if the values never have the kind.
  bool enter(Block *into, const std::vector<Wanted> &wanted, int position) {
    std::vector<std::string> values;
    try {
      for (auto &w : wanted) values.push_back(as(s[w.place], w.kind, REEXECUTE, position).name);
    } catch (Dead_end &) {
      return false;
    }
    for (size_t i = 0; i < values.size(); i++) {
      std::string &from = into->phis[i].from;
      from += (from.empty() ? "[ " : ", [ ") + values[i] + ", %" + at->label + " ]";
    }
    jump(into);
    return true;
  }

  void backward(Body &body, int position, int target) {
    spend(position);
    if (body.method->code[position].op == IF) s.frames.back().stack.pop_back();
    auto found = body.headers.find(target);
    s.frames.back().position = target;
    if (found == body.headers.end()) leave(REEXECUTE, target); // the values at the loop's entry never had it
    Header &h = found->second;
    std::string key = body.path + decimal(target);
    s.forget_dead(body.method->live[target]);
    auto agreed = [&] { // objects that are virtual in the loop must still be virtual
      for (const Place &p : h.state.places()) {
        const Val &v = h.state[p];
        bool gone = p.where == Place::FIELD && !s.objects.count(p.of);
        if (gone || (v.kind == Val::VIRTUAL && !(s[p] == v))) materialized.insert(key), throw Again();
      }
    };
    agreed();
    for (const Wanted &w : h.wanted) {
      Val v = s[w.place];
      if (w.place.where == Place::FIELD && w.kind != Val::BOXED && v.kind != w.kind) boxed.insert(key), throw Again();
      if (v.kind == Val::VIRTUAL) { // allocated in the loop, and outlives it
        materialize(v.object);
        agreed();
      }
    }
    enter(h.block, h.wanted, target);
  }

  // Fuel for a backward jump or a call. If there is none left, exit, and the interpreter detects it.
  void spend(int position) {
    std::string fuel = load("fuel", ptr_type, "@tinyvm_fuel");
    guard(value("some", "icmp sgt i64 " + fuel + ", 0"), REEXECUTE, position);
    store(value("less", "sub i64 " + fuel + ", 1"), ptr_type, "@tinyvm_fuel");
  }

  // Instructions.

  Val &top(int n = 0) {
    std::vector<Val> &stack = s.frames.back().stack;
    return stack[stack.size() - 1 - n];
  }
  void push(const Val &v) { s.frames.back().stack.push_back(v); }
  void pop(int n = 1) { s.frames.back().stack.resize(s.frames.back().stack.size() - n); }
  void push(const Val &v, int popped) { pop(popped), push(v); }

  // A result of the instruction at p, with speculated types. If the speculation fails, the instruction has already run.
  void push_expecting(const Val &v, uint8_t seen, int p) {
    push(v);
    if (v.kind != Val::BOXED) return;
    Val::Kind k = expected(seen);
    if (k != Val::BOXED) as(top(), k, AFTER, p);
  }

  // The n-th operand, with the type that the interpreter saw.
  Val operand(int n, uint8_t seen, int p) {
    Val::Kind k = expected(seen);
    return k == Val::BOXED || top(n).kind != Val::BOXED ? top(n) : as(top(n), k, REEXECUTE, p);
  }

  void generic(Op op, int p) {
    top(1) = box(top(1));
    top(0) = box(top(0));
    std::string v = value("generic", "call i64 @tinyvm_arithmetic(i64 " + decimal(op) + ", i64 " + top(1).name + ", i64 " + top(0).name + ")");
    guard(value("no", "icmp ne i64 " + v + ", " + decimal(trap)), REEXECUTE, p);
    push({Val::BOXED, v}, 2);
  }

  void arithmetic(const Instruction &i, int p) {
    const Notes &n = i.notes;
    if (!n.a) leave(REEXECUTE, p); // never came here
    Val a = operand(1, n.a, p), b = operand(0, n.b, p);
    a = top(1); // facts about b may hold for a too
    bool refs = a.kind >= Val::REF && b.kind >= Val::REF;
    if (i.op == EQ && refs && (a.kind == Val::VIRTUAL || b.kind == Val::VIRTUAL)) return push(int_constant(a == b), 2); // a virtual object equals only itself
    if (i.op == EQ && refs) {
      std::string c = value("same", std::string("icmp eq ") + ref_type + " " + a.name + ", " + b.name);
      return push({Val::INT, value("eq", "zext i1 " + c + " to i32")}, 2);
    }
    bool numbers = (a.kind == Val::INT || a.kind == Val::DOUBLE) && (b.kind == Val::INT || b.kind == Val::DOUBLE);
    if (!numbers) return generic(i.op, p);
    bool ints = a.kind == Val::INT && b.kind == Val::INT;
    if (i.op == LT || i.op == LE || i.op == EQ) {
      const char *with = i.op == LT ? (ints ? "slt" : "olt") : i.op == LE ? (ints ? "sle" : "ole") : ints ? "eq" : "oeq";
      std::string c = ints ? value("c", std::string("icmp ") + with + " i32 " + a.name + ", " + b.name)
                           : value("c", std::string("fcmp ") + with + " double " + as_double(a) + ", " + as_double(b));
      return push({Val::INT, value(i.op == LT ? "lt" : i.op == LE ? "le" : "eq", "zext i1 " + c + " to i32")}, 2);
    }
    if (!ints || i.op == DIV) {
      const char *does = i.op == ADD ? "fadd" : i.op == SUB ? "fsub" : i.op == MUL ? "fmul" : "fdiv";
      std::string x = as_double(a), y = as_double(b);
      return push({Val::DOUBLE, value(does + 1, std::string(does) + " double " + x + ", " + y)}, 2);
    }
    if (a.constant() && b.constant()) {
      Value v = tinyvm::arithmetic(i.op, box_int(atoi(a.name.c_str())), box_int(atoi(b.name.c_str())));
      if (fault("constant") && is_int(v)) v = box_int(static_cast<int32_t>(v) ^ 1);
      return push(constant(v), 2);
    }
    if (n.result & SAW_DOUBLE) return generic(i.op, p); // it did overflow
    const char *does = i.op == ADD ? "add" : i.op == SUB ? "sub" : "mul";
    if (fault("guard")) return push({Val::INT, value(does, std::string(does) + " i32 " + a.name + ", " + b.name)}, 2);
    std::string both = value("both", std::string("call { i32, i1 } @llvm.s") + does + ".with.overflow.i32(i32 " + a.name + ", i32 " + b.name + ")");
    std::string over = value("over", "extractvalue { i32, i1 } " + both + ", 1");
    guard(value("fits", "xor i1 " + over + ", true"), REEXECUTE, p);
    push({Val::INT, value(does, "extractvalue { i32, i1 } " + both + ", 0")}, 2);
  }

  // An operand that is a real object: a reference that is not null, of the class that the interpreter always saw there.
  void expect_object(int n, const Class *c, int p) {
    Val v = as(top(n), Val::REF, REEXECUTE, p);
    if (v.cls && (v.cls == c || !c)) return;
    if (v.constant() || (v.cls && v.cls != c)) leave(REEXECUTE, p);
    guard(value("there", std::string("icmp ne ") + ref_type + " " + v.name + ", null"), REEXECUTE, p);
    if (!c) return;
    std::string name = load("class", ref_type, v.name);
    guard(value("is", "icmp eq i64 " + name + ", " + address(c->name)), REEXECUTE, p);
    Val known = v;
    known.cls = c;
    refine(v, known);
  }

  void mark(const std::string &object) { // the write barrier
    std::string word = value("word", std::string("ptrtoint ") + ref_type + " " + object + " to i64");
    std::string card = value("card", "and i64 " + value("line", "lshr i64 " + word + ", 9") + ", 255");
    emit("store i8 1, " + byte_type + " " + value("at", "getelementptr i8, " + byte_type + " @tinyvm_cards, i64 " + card));
  }

  void field(const Instruction &i, int p) {
    bool get = i.op == GETFIELD;
    int n = get ? 0 : 1, at;
    if (top(n).kind == Val::VIRTUAL) {
      VObject &o = s.objects.at(top(n).object);
      if ((at = o.cls->find(i.name)) < 0) leave(REEXECUTE, p);
      if (get) return push(Val(o.fields[at]), 1);
      if (o.fields[at].kind != Val::VIRTUAL) o.before[at] = o.fields[at];
      o.fields[at] = top();
      return pop(2);
    }
    if (!i.notes.cls) leave(REEXECUTE, p);
    std::string v;
    if (i.notes.classes) { // many
      top(n) = box(top(n));
      std::string args = "(i64 " + top(n).name + ", i64 " + address(i.name);
      if (!get) top() = box(top()), args += ", i64 " + top().name;
      v = value("field", std::string("call i64 @tinyvm_") + (get ? "get" : "put") + "field" + args + ")");
      guard(value("no", "icmp ne i64 " + v + ", " + decimal(trap)), REEXECUTE, p);
    } else {
      expect_object(n, i.notes.cls, p);
      std::string address = pointer(ref_type, top(n).name, 2 + i.notes.cls->find(i.name));
      if (get) v = load(i.name, ref_type, address);
      else {
        store(box(top()).name, ref_type, address);
        if (!fault("barrier")) mark(top(1).name);
      }
    }
    if (!get) return pop(2);
    pop();
    push_expecting({Val::BOXED, v}, i.notes.result, p);
  }

  void lock(const Val &v, const char *does) {
    std::string word = pointer(ref_type, v.name, 1); // the count of fields is above the lock
    store(value("lock", std::string(does) + " i64 " + load("lock", ref_type, word) + ", 1"), ref_type, word);
  }

  void monitor(const Instruction &i, int p) {
    std::vector<Val> &monitors = s.frames.back().monitors;
    if (i.op == EXIT) {
      Val v = monitors.back();
      monitors.pop_back();
      if (v.kind != Val::VIRTUAL) lock(v, "sub");
      return;
    }
    if (!i.notes.a) leave(REEXECUTE, p);
    if (top().kind != Val::VIRTUAL) {
      expect_object(0, nullptr, p);
      lock(top(), "add");
      if (fault("early")) store(decimal(box_int(1)), ref_type, pointer(ref_type, top().name, 2)); // the first field
    }
    monitors.push_back(top());
    pop();
  }

  bool inlines(Method *m) {
    if (s.frames.size() >= max_inlined || !m->interpreted || m->code.size() > max_callee || size > max_size) return false;
    for (VFrame &f : s.frames)
      if (f.method == m) return false;
    return true;
  }

  void call(Body &body, const Instruction &i, int p) {
    Method *m = i.callee;
    if (!i.notes.result) leave(REEXECUTE, p);
    int under = s.frames.size();
    guard(value("room", "icmp slt i64 %depth, " + decimal(max_depth - under)), REEXECUTE, p);
    spend(p);
    if (inlines(m)) {
      VFrame f{};
      f.method = m;
      for (int a = m->args; a-- > 0;) f.locals.push_back(top(a));
      f.locals.resize(m->locals, null_constant());
      pop(m->args);
      s.frames.push_back(f);
      Body inner{m, body.path + decimal(p) + "/", {}, {}, {}};
      walk(inner);
      if (inner.returns.empty()) throw Dead_end();
      merge(std::move(inner.returns), nullptr, p, body.method->live[p + 1]);
      return;
    }
    for (int a = 0; a < m->args; a++) {
      std::string v = box(top(m->args - 1 - a)).name;
      store(v, ptr_type, pointer(ptr_type, "%out", a));
    }
    pop(m->args);
    std::string args = "(i64 " + address(m) + ", i64 " + value("under", "add i64 %depth, " + decimal(under)) + ", " + ptr_type + " %out)";
    std::string v = value("result", "call i64 @tinyvm_call" + args + " " + site(IN_CALL, p));
    Block *on = block("on"), *stopped = block("stopped");
    std::string go = value("go", "icmp eq i64 " + load("stops", ptr_type, "@tinyvm_stopped") + ", 0");
    emit("br i1 " + go + ", label %" + on->label + ", label %" + stopped->label);
    at = stopped;
    emit("ret i64 0");
    at = on;
    push_expecting({Val::BOXED, v}, i.notes.result, p);
  }

  void edge(Body &body, int position, int target) {
    if (target > position) {
      if (body.method->code[position].op == IF) pop();
      body.in[target].push_back({at, s});
    } else {
      try {
        backward(body, position, target);
      } catch (Dead_end &) {
      }
    }
    at = nullptr;
  }

  void branch(Body &body, const Instruction &i, int p) {
    const Notes &n = i.notes;
    if (!n.a) leave(REEXECUTE, p);
    Val v = operand(0, n.a, p);
    std::string c;
    int always = -1; // or 0, 1
    if (v.constant() || v.kind == Val::VIRTUAL)
      always = v.kind == Val::VIRTUAL || (v.kind == Val::INT && atoi(v.name.c_str())) || (v.kind == Val::DOUBLE && truth(strtoull(v.name.c_str(), nullptr, 16) + double_offset)) || (v.kind == Val::BOXED && truth(strtoull(v.name.c_str(), nullptr, 10)));
    else if (v.kind == Val::INT) c = value("true", "icmp ne i32 " + v.name + ", 0");
    else if (v.kind == Val::DOUBLE) c = value("true", "fcmp une double " + v.name + ", 0.0");
    else if (v.kind == Val::REF) c = value("true", std::string("icmp ne ") + ref_type + " " + v.name + ", null");
    else c = value("true", "icmp ne i64 " + value("truth", "call i64 @tinyvm_truth(i64 " + v.name + ")") + ", 0");
    Block *ways[] = {nullptr, nullptr};
    for (int w = 0; w < 2; w++)
      if (always < 0 || always == w) ways[w] = block(w ? "taken" : "not");
    if (always < 0) emit("br i1 " + c + ", label %" + ways[1]->label + ", label %" + ways[0]->label);
    else jump(ways[always]);
    State here = s;
    for (int w = 0; w < 2; w++) {
      if (!ways[w]) continue;
      at = ways[w], s = here;
      int target = w ? i.a : p + 1;
      if (target > p && !(w ? n.taken : n.not_taken)) { // this path was never taken
        pop();
        exit_here(REEXECUTE, target);
        continue;
      }
      edge(body, p, target);
    }
    at = nullptr;
  }

  void step(Body &body, int p) {
    const Instruction &i = body.method->code[p];
    VFrame &f = s.frames.back();
    size++;
    switch (i.op) {
    case CONST: push(constant(i.value)); break;
    case GET: push(Val(f.locals[i.a])); break;
    case SET:
      if (f.locals[i.a].kind != Val::DEAD && f.locals[i.a].kind != Val::VIRTUAL) f.before[i.a] = f.locals[i.a];
      f.locals[i.a] = top();
      pop();
      break;
    case DUP: push(Val(top())); break;
    case POP: pop(); break;
    case JUMP: edge(body, p, i.a); break;
    case IF: branch(body, i, p); break;
    case NEW: {
      s.objects[objects] = {i.cls, std::vector<Val>(i.cls->fields.size(), null_constant())};
      push({Val::VIRTUAL, "", objects++});
      break;
    }
    case GETFIELD:
    case PUTFIELD: field(i, p); break;
    case ENTER:
    case EXIT: monitor(i, p); break;
    case PRINT:
      emit("call void @tinyvm_print(i64 " + box(top()).name + ")");
      pop();
      break;
    case CALL: call(body, i, p); break;
    case RETURN: {
      if (s.frames.size() == 1) {
        emit("ret i64 " + box(top()).name);
      } else {
        Val v = top();
        s.frames.pop_back();
        push(v);
        body.returns.push_back({at, s});
      }
      at = nullptr;
      break;
    }
    default: arithmetic(i, p);
    }
  }

  void walk(Body &body) {
    Method *m = body.method;
    for (int p = 0; p < static_cast<int>(m->code.size()); p++) {
      std::vector<Edge> in = std::move(body.in[p]);
      if (at && (m->header[p] || !in.empty())) in.push_back({at, s}), at = nullptr;
      if (!in.empty()) {
        for (Edge &e : in) e.state.frames.back().position = p;
        merge(std::move(in), &body, p, m->live[p]);
      }
      if (!at) continue;
      s.frames.back().position = p;
      try {
        step(body, p);
      } catch (Dead_end &) {
        at = nullptr;
      }
    }
  }

  std::string translate(const std::string &symbol) {
    at = block("entry");
    VFrame f{};
    f.method = root;
    size_t most = 1;
    for (Method *m : methods) most = std::max(most, static_cast<size_t>(m->args));
    emit("%out = alloca i64, i64 " + decimal(most)); // arguments of calls
    used.insert({"out", "depth", "args"});
    for (int a = 0; a < root->args; a++) f.locals.push_back({Val::BOXED, load("local" + decimal(a), ptr_type, pointer(ptr_type, "%args", a))});
    f.locals.resize(root->locals, null_constant());
    s.frames.push_back(f);
    if (options.entries) {
      std::string kinds, operands = bundle(s, REEXECUTE, 0, kinds, !options.right_entries);
      emit("call void (i64, i32, ...) @llvm.experimental.stackmap(i64 " + decimal(next_site) + ", i32 0, " + operands + ")");
      remember_kinds(next_site++, kinds);
    }
    Body body{root, "", {}, {}, {}};
    walk(body);
    std::string ref = ref_type, ptr = ptr_type, leaf = " \"gc-leaf-function\"\n"; // which never uses a frame
    std::string text = "@tinyvm_cards = external global i8\n@tinyvm_fuel = external global i64\n@tinyvm_stopped = external global i64\n"
                       "declare i64 @llvm.experimental.deoptimize.i64(...)\n"
                       "declare void @llvm.experimental.stackmap(i64, i32, ...)\n"
                       "declare { i32, i1 } @llvm.sadd.with.overflow.i32(i32, i32)\n"
                       "declare { i32, i1 } @llvm.ssub.with.overflow.i32(i32, i32)\n"
                       "declare { i32, i1 } @llvm.smul.with.overflow.i32(i32, i32)\n"
                       "declare i64 @tinyvm_call(i64, i64, " + ptr + ")\n"
                       "declare " + ref + " @tinyvm_new(i64)" + leaf + "declare void @tinyvm_print(i64)" + leaf +
                       "declare i64 @tinyvm_arithmetic(i64, i64, i64)" + leaf + "declare i64 @tinyvm_truth(i64)" + leaf +
                       "declare i64 @tinyvm_getfield(i64, i64)" + leaf + "declare i64 @tinyvm_putfield(i64, i64, i64)" + leaf;
    text += "define i64 @\"" + symbol + "\"(i64 %depth, " + ptr + " %args) \"frame-pointer\"=\"none\" gc \"statepoint-example\" {\n";
    for (Block &b : blocks) {
      if (b.dead) continue;
      text += b.label + ":\n";
      for (Phi &p : b.phis) text += "  " + p.name + " = phi " + p.type + " " + p.from + "\n";
      text += b.text.empty() ? "  unreachable\n" : b.text;
    }
    return text + "}\n";
  }
};

} // namespace

void remember_kinds(uint64_t id, const std::string &kinds) { kinds_by_site[id] = kinds; }

const std::string *kinds_of(uint64_t id) {
  auto found = kinds_by_site.find(id);
  return found == kinds_by_site.end() ? nullptr : &found->second;
}

bool translate(Method *m, Translation &out) {
  std::set<std::string> materialized, boxed;
  out.symbol = std::string(m->name) + "#" + std::to_string(m->versions + 1);
  uint64_t first = next_site;
  for (int tries = 0; tries < 50; tries++) {
    next_site = first; // what a failed attempt has used
    try {
      out.text = Compiler(m, materialized, boxed).translate(out.symbol);
      return true;
    } catch (Again &) {
    }
  }
  return false;
}

} // namespace tinyvm
