// The plain interpreter for reframe, which passes the frames of a process. The interpreter runs them, over copies of the objects that it uses. At
// the end its stores are written back to reframe's copy of the process's memory.
#include "../protocol/reframe_vm.h"
#include "vm.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

namespace tinyvm {

bool serving = false;

namespace {

struct Unsupported : std::runtime_error {
  using runtime_error::runtime_error;
};
struct Malformed : std::runtime_error { // frames that cannot exist
  using runtime_error::runtime_error;
};
struct Stopped { // it reached the requested stop
  std::vector<Frame> frames;
};

// State of the current resume.
std::map<Value, Object *> copies;
std::map<const Object *, Value> addresses;
std::map<Value, const Class *> names; // of classes, by their address in the process
std::map<Value, std::pair<const void *, size_t>> changed; // by address in the process: the local copy, and its size
struct Step {
  const Method *method;
  int position;
};
std::vector<Step> tail;
size_t wanted;
uint64_t steps, limit;
const rf_json *asked; // the request
bool locked;
std::string output;
std::set<uint64_t> cards; // that were marked

std::string hex(uint64_t v) {
  char text[20];
  snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(v));
  return text;
}

void read(uint64_t at, void *data, size_t size, const std::string &what) {
  rf_range r{at, size, data, 0};
  rf_read(&r, 1);
  if (!r.ok) throw Unsupported(what + " at " + hex(at) + " cannot be read");
}

const Class *class_at(Value name) {
  auto known = names.find(name);
  if (known != names.end()) return known->second;
  char text[64] = {};
  rf_range r{name, sizeof text - 1, text, 0};
  for (rf_read(&r, 1); !r.ok && r.size > 1; rf_read(&r, 1)) r.size /= 2; // it may be at the end of a mapping
  const Class *found = nullptr;
  for (const Class *c : classes)
    if (r.ok && !strcmp(c->name, text)) found = c;
  if (!found) throw Unsupported("the name of a class at " + hex(name) + " is none of this program");
  return names[name] = found;
}

Object *copy_of(Value at, const Class *c) {
  Object *o = static_cast<Object *>(calloc(1, fields_at + sizeof(Value) * (c->fields.size() + 1)));
  o->name = c->name, o->count = c->fields.size();
  copies[at] = o, addresses[o] = at;
  return o;
}

} // namespace

Object *fetched(Value v) {
  auto known = copies.find(v);
  if (known != copies.end()) return known->second;
  struct {
    Value name;
    int32_t lock, count;
    Value fields[14];
  } there; // this reads most objects in one request
  rf_range r{v, sizeof there, &there, 0};
  rf_read(&r, 1);
  if (!r.ok) read(v, &there, fields_at, "an object");
  const Class *c = class_at(there.name);
  size_t n = c->fields.size();
  if (there.count != static_cast<int32_t>(n)) throw Unsupported("an object at " + hex(v) + " has " + std::to_string(there.count) + " fields, and a " + c->name + " has " + std::to_string(n));
  Object *o = copy_of(v, c);
  o->lock = there.lock;
  if (r.ok && n <= 14) memcpy(o->fields, there.fields, n * sizeof(Value));
  else if (n) read(v + fields_at, o->fields, n * sizeof(Value), "the fields of an object");
  return o;
}

// Names have the same addresses as in the process if it runs the same program; this is checked.
Object *made(const Class *c) {
  Value name = reinterpret_cast<Value>(c->name), at;
  if (class_at(name) != c) throw Unsupported(std::string("the process has the name of ") + c->name + " elsewhere");
  at = rf_allocate(fields_at + sizeof(Value) * c->fields.size(), 16);
  if (!at) throw Unsupported("there is no memory for a " + std::string(c->name));
  Object *o = copy_of(at, c);
  noted(&o->name, fields_at + sizeof(Value) * c->fields.size());
  return o;
}

Value address_of(const Object *o) { return addresses.at(o); }

void noted(const void *word, size_t size) {
  auto a = addresses.upper_bound(static_cast<const Object *>(word)); // the copy that contains it is the last one that begins before it
  const Object *o = std::prev(a)->first;
  Value at = std::prev(a)->second + (static_cast<const char *>(word) - reinterpret_cast<const char *>(o));
  auto &is = changed[at];
  is = {word, std::max(is.second, size)};
  if (word == &o->lock) locked = true;
}

void marked(Value object) {
  if (object - heap_start < heap_size) cards.insert(card_of(object)); // the process has new objects elsewhere, if at all
}

void stepped(const std::vector<Frame> &frames) {
  if (rf_stops(asked, steps, frames.size())) throw Stopped{frames};
  const Method *m = frames.back().method;
  int position = frames.back().position;
  if (limit && steps >= limit) throw Unsupported("it has run " + std::to_string(steps) + " instructions");
  if (wanted) {
    if (tail.size() < wanted) tail.push_back({m, position});
    else tail[steps % wanted] = {m, position};
  }
  steps++;
}

void emit(const std::string &text) {
  output += text;
  if (output.size() > 4096) rf_output(output.data(), output.size()), output.clear();
}

namespace {

std::map<int64_t, Value> virtuals; // virtual objects, by id

Value value(const rf_json *j, const std::string &where) {
  if (const rf_json *id = rf_get(j, "object")) {
    auto o = virtuals.find(rf_int(id, -1));
    if (o == virtuals.end()) throw Malformed(where + " is an object that is not described");
    return o->second;
  }
  if (rf_true(rf_get(j, "dead"))) return null;
  const char *type = rf_str(rf_get(j, "type"));
  uint64_t bits = rf_bits(rf_get(j, "bits"));
  double d;
  if (!type) throw Malformed(where + " has no type");
  if (!strcmp(type, "i32") || !strcmp(type, "i8") || !strcmp(type, "i1")) return box_int(static_cast<int32_t>(bits));
  if (!strcmp(type, "f64") || !strcmp(type, "double")) return memcpy(&d, &bits, sizeof d), box_double(d);
  if (!strcmp(type, "ref") || !strcmp(type, "null")) return bits;
  throw Malformed(where + " is of type " + type);
}

std::string place(const Frame &f) { return std::string(f.method->name) + " @ " + std::to_string(f.position); }

Frame frame(const rf_json *j, const Method *inner, bool &waits) {
  Frame f{};
  const char *name = rf_str(rf_get(j, "method")), *resume = rf_str(rf_get(j, "resume"));
  for (Method *m : methods)
    if (name && !strcmp(m->name, name)) f.method = m;
  if (!f.method) throw Malformed(std::string("there is no method ") + (name ? name : "without a name"));
  int64_t position = rf_int(rf_get(j, "position"), -1);
  f.position = position < 0 || position > INT32_MAX - 1 ? -1 : position; // which is not a place
  bool after = resume && !strcmp(resume, "after"), again = resume && !strcmp(resume, "reexecute");
  waits = resume && !strcmp(resume, "in-call");
  if (!waits && !after && !again) throw Unsupported(place(f) + " is to be resumed by " + (resume ? resume : "nothing"));
  if (!waits && inner) throw Malformed(place(f) + " has called another method, and does not wait for it");
  if (after && f.position >= 0 && size_t(f.position) < f.method->code.size()) {
    const Instruction &ran = f.method->code[f.position++];
    if (ran.op == JUMP || ran.op == IF || ran.op == RETURN) throw Unsupported(std::string("what is after ") + name_of(ran.op) + " is not at one place");
  }
  const Method *m = f.method;
  if (f.position < 0 || size_t(f.position) >= m->code.size() || m->depth[f.position] < 0) throw Malformed(place(f) + " is no place in the program");
  const Instruction &i = m->code[f.position];
  if (waits && i.op != CALL) throw Malformed(place(f) + " waits for a call, and that is " + name_of(i.op));
  if (inner && i.callee != inner) throw Malformed(place(f) + " has called " + i.callee->name + ", and the frame inside is of " + inner->name);
  f.locals.assign(m->locals, trap);
  for (const rf_json *l = rf_get(j, "locals") ? rf_get(j, "locals")->first : nullptr; l; l = l->next) {
    int64_t n = rf_int(rf_get(l, "index"), -1);
    if (n < 0 || n >= m->locals) throw Malformed(place(f) + " has no local " + std::to_string(n));
    f.locals[n] = value(l, "local " + std::to_string(n) + " of " + place(f));
    if (rf_true(rf_get(l, "dead"))) f.dead |= 1ull << n;
  }
  for (size_t n = 0; n < f.locals.size(); n++)
    if (f.locals[n] == trap) throw Malformed("local " + std::to_string(n) + " of " + place(f) + " is missing");
  for (const rf_json *s = rf_get(j, "stack") ? rf_get(j, "stack")->first : nullptr; s; s = s->next) f.stack.push_back(value(s, "the operand stack of " + place(f)));
  size_t depth = m->depth[f.position] - (waits ? i.callee->args : 0);
  if (f.stack.size() != depth) throw Malformed("the operand stack of " + place(f) + " has " + std::to_string(f.stack.size()) + " values, and " + std::to_string(depth) + " are there");
  for (const rf_json *k = rf_get(j, "monitors") ? rf_get(j, "monitors")->first : nullptr; k; k = k->next) {
    Value owner = value(rf_get(k, "owner"), "a monitor of " + place(f));
    f.monitors.push_back(owner);
    Object *o = object(owner);
    if (!o) throw Malformed("a monitor of " + place(f) + " is of no object");
    if (rf_true(rf_get(k, "eliminated"))) o->lock++, noted(&o->lock, sizeof o->lock);
  }
  if (f.monitors.size() != size_t(m->held[f.position])) throw Malformed(place(f) + " holds " + std::to_string(m->held[f.position]) + " monitors, and " + std::to_string(f.monitors.size()) + " were handed over");
  return f;
}

// A value in the form of the protocol.
void put(rf_text *t, int64_t index, Value v) {
  if (is_int(v)) rf_add_value(t, index, "i32", static_cast<uint32_t>(v), text(v).c_str());
  else if (is_ref(v)) rf_add_value(t, index, v ? "ref" : "null", v, v ? hex(v).c_str() : "null");
  else rf_add_value(t, index, "f64", v - double_offset, text(v).c_str());
}

void put(rf_text *t, const char *name, const std::vector<Value> &values, uint64_t dead) {
  rf_addf(t, ",\"%s\":[", name);
  for (size_t n = 0; n < values.size(); n++) {
    if (n) rf_addf(t, ",");
    if (n < 64 && dead >> n & 1) rf_add_value(t, n, nullptr, 0, nullptr);
    else put(t, n, values[n]);
  }
  rf_addf(t, "]");
}

std::string instruction(const Instruction &i) {
  std::string line = name_of(i.op);
  if (i.op == CONST) return line + " " + text(i.value);
  if (i.op == GET || i.op == SET || i.op == JUMP || i.op == IF) return line + " " + std::to_string(i.a);
  const char *name = i.op == CALL ? i.callee->name : i.op == NEW ? i.cls->name : i.name;
  return name ? line + " " + name : line;
}

// The frames in which it has stopped, so that a later resume can continue from there: the innermost has not run its instruction, all others wait.
void put(rf_text *t, const std::vector<Frame> &frames, int64_t depth) {
  rf_addf(t, "[");
  for (size_t n = frames.size(); n-- > 0;) {
    const Frame &f = frames[n];
    bool innermost = n == frames.size() - 1;
    rf_addf(t, "%s{\"method\":", innermost ? "" : ","), rf_quote(t, f.method->name, strlen(f.method->name));
    std::string line = instruction(f.method->code[f.position]);
    rf_addf(t, ",\"position\":%d,\"resume\":\"%s\",\"text\":", f.position, innermost ? "reexecute" : "in-call"), rf_quote(t, line.data(), line.size());
    put(t, "locals", f.locals, f.dead), put(t, "stack", f.stack, 0);
    rf_addf(t, ",\"monitors\":[");
    for (size_t m = 0; m < f.monitors.size(); m++) rf_addf(t, "%s{\"owner\":", m ? "," : ""), put(t, -1, f.monitors[m]), rf_addf(t, "}");
    rf_addf(t, "]");
    if (!n) rf_addf(t, ",\"extra\":{\"extra 2\":"), rf_add_value(t, -1, "i64", depth, std::to_string(depth).c_str()), rf_addf(t, "}");
    rf_addf(t, "}");
  }
  rf_addf(t, "]");
}

void objects(const rf_json *list) {
  for (const rf_json *j = list ? list->first : nullptr; j; j = j->next) {
    const char *name = rf_str(rf_get(j, "class"));
    const Class *c = nullptr;
    for (const Class *k : classes)
      if (name && !strcmp(k->name, name)) c = k;
    if (!c) throw Malformed(std::string("there is no class ") + (name ? name : "without a name"));
    virtuals[rf_int(rf_get(j, "id"), -1)] = reference(made(c));
  }
  for (const rf_json *j = list ? list->first : nullptr; j; j = j->next) { // now all exist, so one may refer to any other
    Object *o = object(virtuals[rf_int(rf_get(j, "id"), -1)]);
    std::set<int64_t> given;
    for (const rf_json *f = rf_get(j, "fields") ? rf_get(j, "fields")->first : nullptr; f; f = f->next) {
      int64_t n = (rf_int(rf_get(f, "at"), -1) - fields_at) / int64_t(sizeof(Value));
      if (n < 0 || n >= o->count || !given.insert(n).second) throw Malformed(std::string("a ") + o->name + " that was not allocated has a field " + std::to_string(n));
      o->fields[n] = value(f, "field " + std::to_string(n) + " of a " + o->name);
    }
    if (given.size() != size_t(o->count)) throw Malformed(std::string("a ") + o->name + " that was not allocated has " + std::to_string(given.size()) + " fields, and " + std::to_string(o->count) + " are there");
  }
}

void resume_in(const rf_json *request) {
  const char *const symbols[] = {"tinyvm_fuel", "tinyvm_stopped", "tinyvm_why", "tinyvm_cards"};
  uint64_t at[4];
  rf_symbols(symbols, 4, at);
  if (!at[0] || !at[1] || !at[2]) throw Unsupported("the process has no tinyvm_fuel: it is no tinyvm");
  rf_range globals[] = {{at[0], sizeof tinyvm_fuel, &tinyvm_fuel, 0}, {at[1], sizeof tinyvm_stopped, &tinyvm_stopped, 0}, {at[2], sizeof tinyvm_why, tinyvm_why, 0}};
  rf_read(globals, 3);
  if (!globals[0].ok || !globals[1].ok || !globals[2].ok) throw Unsupported("tinyvm_fuel cannot be read");
  objects(rf_get(request, "objects"));
  std::vector<Frame> frames; // outermost first
  bool waits = false;
  int64_t depth = 0;
  const rf_json *list = rf_get(request, "frames");
  for (const rf_json *j = list ? list->first : nullptr; j; j = j->next) {
    bool is;
    frames.insert(frames.begin(), frame(j, frames.empty() ? nullptr : frames.front().method, is));
    if (j == list->first) waits = is;
    if (!j->next) depth = rf_bits(rf_get(rf_get(rf_get(j, "extra"), "extra 2"), "bits"));
  }
  if (frames.empty()) throw Unsupported("there are no frames");
  const rf_json *returned = rf_get(request, "returned");
  if (waits && !returned) throw Unsupported("what the call returned for which the innermost frame waits is missing");
  Value v = null;
  static rf_text stopped; // the frames in which it stopped, as text
  stopped.size = 0;
  try {
    v = interpret(std::move(frames), depth, waits, rf_bits(rf_get(returned, "bits")));
  } catch (const Stopped &s) {
    put(&stopped, s.frames, depth);
  }
  if (!output.empty()) rf_output(output.data(), output.size());
  std::vector<rf_range> ranges = {globals[0], globals[1]};
  if (tinyvm_stopped) ranges.push_back(globals[2]);
  static uint8_t mark = 1;
  if (at[3])
    for (uint64_t c : cards) ranges.push_back({at[3] + c, 1, &mark, 0});
  for (auto &c : changed) ranges.push_back({c.first, c.second.second, const_cast<void *>(c.second.first), 0});
  if (!rf_write(ranges.data(), ranges.size())) throw Unsupported("the process's memory cannot be written");
  if (stopped.size) rf_stopped(&stopped);
  else if (tinyvm_stopped) rf_threw(tinyvm_why), rf_returned("i64", null, nullptr);
  else rf_returned("i64", v, text(v).c_str());
}

void resume(const rf_json *request) {
  for (auto &c : copies) free(c.second);
  copies.clear(), addresses.clear(), names.clear(), changed.clear(), cards.clear(), virtuals.clear(), tail.clear(), output.clear();
  steps = 0, locked = false, asked = request;
  limit = rf_int(rf_get(request, "steps"), 0);
  wanted = std::min<int64_t>(std::max<int64_t>(rf_int(rf_get(request, "tail"), 0), 0), 1 << 16);
  try {
    resume_in(request);
  } catch (const Unsupported &u) {
    rf_unsupported(u.what());
  } catch (const Malformed &m) {
    rf_malformed(m.what());
  }
  rf_steps(steps);
  if (!locked) rf_locked(0);
  std::vector<std::string> lines;
  for (size_t n = 0; n < tail.size(); n++) {
    const Step &s = tail[tail.size() < wanted ? n : (steps + n) % wanted];
    lines.push_back(std::string(s.method->name) + " @ " + std::to_string(s.position) + " " + name_of(s.method->code[s.position].op));
  }
  std::vector<const char *> texts;
  for (const std::string &l : lines) texts.push_back(l.c_str());
  rf_tail(texts.data(), texts.size());
}

} // namespace

void serve() {
  serving = options.interpret = true;
  rf_offer_step();
  rf_serve("tinyvm", resume);
}

} // namespace tinyvm
