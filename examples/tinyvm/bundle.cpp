// How a deopt bundle describes the frames at a place, and its encoding.
#include "state.h"

#include <set>

namespace tinyvm {

namespace {

Described describe(const State &s, Mode mode, int position) {
  Described d;
  std::set<int> seen;
  std::vector<int> todo; // virtual objects that must be described
  auto reach = [&](const std::vector<Val> &values) {
    for (const Val &v : values)
      if (v.kind == Val::VIRTUAL && seen.insert(v.object).second) todo.push_back(v.object);
  };
  for (const VFrame &f : s.frames) {
    bool last = &f == &s.frames.back();
    Described::Scope is{&f, last ? mode : IN_CALL, last ? position : f.position, f.locals, f.stack, f.monitors};
    uint64_t live = f.method->live[is.mode == REEXECUTE ? is.position : is.position + 1];
    for (size_t l = 0; l < is.locals.size(); l++)
      if (!(live >> l & 1)) is.locals[l] = Val{};
    reach(is.locals), reach(is.stack), reach(is.monitors);
    d.frames.push_back(is);
  }
  while (!todo.empty()) {
    int id = todo.back();
    todo.pop_back();
    d.objects.push_back({id, s.objects.at(id)});
    reach(d.objects.back().second.fields);
  }
  return d;
}

struct Writer {
  std::string text, &kinds;

  void operand(const std::string &type, const std::string &value) { text += (text.empty() ? "" : ", ") + type + " " + value; }
  void tag(What what, int how, int index) { operand("i64", std::to_string(int64_t(what) << 32 | int64_t(how) << 24 | index)); }
  void address(const void *p) { operand("i64", std::to_string(reinterpret_cast<uint64_t>(p))); }

  void item(What what, int index, const Val &v) {
    switch (v.kind) {
    case Val::DEAD: tag(what, AS_DEAD, index), operand("i64", "0"); break;
    case Val::BOXED: tag(what, AS_BOXED, index), operand("i64", v.name); break;
    case Val::INT: tag(what, TYPED, index), operand("i32", v.name), kinds += 'i'; break;
    case Val::DOUBLE: tag(what, TYPED, index), operand("double", v.name), kinds += 'd'; break;
    case Val::REF: tag(what, AS_REF, index), operand(ref_type, v.name); break;
    case Val::VIRTUAL: tag(what, AS_VIRTUAL, index), operand("i32", std::to_string(v.object)); break;
    }
  }

  void all(const Described &d) {
    for (const Described::Scope &f : d.frames) {
      tag(FRAME, 0, f.mode), address(f.of->method->name), operand("i32", std::to_string(f.position));
      if (&f == &d.frames.front()) tag(EXTRA, TYPED, 2), operand("i64", "%depth"); // the number of frames under the first
      for (size_t l = 0; l < f.locals.size(); l++) item(LOCAL, l, f.locals[l]);
      for (size_t k = f.left_out; k < f.stack.size(); k++) item(STACK, k, f.stack[k]);
      for (const Val &m : f.monitors) item(MONITOR, m.kind == Val::VIRTUAL, m);
    }
    for (auto &o : d.objects) {
      const std::vector<Val> &fields = o.second.fields;
      tag(OBJECT, 0, o.first), address(o.second.cls->name), operand("i32", std::to_string(fields.size()));
      for (size_t k = 0; k < fields.size(); k++) item(FIELD, fields_at + sizeof(Value) * k, fields[k]);
    }
  }
};

} // namespace

std::string bundle(const State &s, Mode mode, int position, std::string &kinds, bool may_be_wrong) {
  Described d = describe(s, mode, position);
  if (may_be_wrong && !options.fault.empty()) spoil(d);
  Writer w{"", kinds};
  w.all(d);
  return w.text;
}

Val &State::operator[](const Place &p) {
  switch (p.where) {
  case Place::LOCAL: return frames[p.of].locals[p.index];
  case Place::STACK: return frames[p.of].stack[p.index];
  case Place::MONITOR: return frames[p.of].monitors[p.index];
  default: return objects.at(p.of).fields[p.index];
  }
}

std::vector<Place> State::places() const {
  std::vector<Place> all;
  auto add = [&](Place::Where where, int of, size_t n) {
    for (size_t i = 0; i < n; i++) all.push_back({where, of, static_cast<int>(i)});
  };
  for (size_t f = 0; f < frames.size(); f++) {
    add(Place::LOCAL, f, frames[f].locals.size());
    add(Place::STACK, f, frames[f].stack.size());
    add(Place::MONITOR, f, frames[f].monitors.size());
  }
  for (auto &o : objects) add(Place::FIELD, o.first, o.second.fields.size());
  return all;
}

void State::forget_dead(uint64_t live) {
  std::vector<Val> &locals = frames.back().locals;
  for (size_t l = 0; l < locals.size(); l++)
    if (!(live >> l & 1)) locals[l] = Val{};
  std::set<int> reached;
  std::vector<int> todo;
  auto reach = [&](const Val &v) {
    if (v.kind == Val::VIRTUAL && reached.insert(v.object).second) todo.push_back(v.object);
  };
  for (const Place &p : places())
    if (p.where != Place::FIELD) reach((*this)[p]);
  while (!todo.empty()) {
    int id = todo.back();
    todo.pop_back();
    for (const Val &v : objects.at(id).fields) reach(v);
  }
  for (auto o = objects.begin(); o != objects.end();) o = reached.count(o->first) ? std::next(o) : objects.erase(o);
}

int State::locks(int object) const {
  int n = 0;
  for (const VFrame &f : frames)
    for (const Val &m : f.monitors) n += m.kind == Val::VIRTUAL && m.object == object;
  return n;
}

void State::replace(Val old, Val now) { // by value: they may be among the replaced ones
  for (const Place &p : places())
    if ((*this)[p] == old) (*this)[p] = now;
}

} // namespace tinyvm
