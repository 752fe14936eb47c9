// The `simple` encoding: a frame as the operands of a deopt bundle. A stream of items, each with a constant in front,
// what << 32 | how << 24 | index. doc/layouts.md describes it.
#include "state.h"

#include <set>

namespace tinyvm {

namespace {

enum What { FRAME = 1, LOCAL = 2, STACK = 3, MONITOR = 4, OBJECT = 5, FIELD = 6, EXTRA = 7 };
enum How { TYPED = 0, AS_BOXED = 1, AS_REF = 2, AS_VIRTUAL = 3, AS_DEAD = 4 };

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
    case Val::VIRTUAL: tag(what, AS_VIRTUAL, index), operand("i32", std::to_string(v.object + fault("object"))); break;
    }
  }
};

} // namespace

std::string bundle(const State &s, Mode mode, int position, std::string &kinds) {
  Writer w{"", kinds};
  std::set<int> seen;
  std::vector<int> todo; // virtual objects that must be described
  auto item = [&](What what, int index, const Val &v) {
    w.item(what, index, v);
    if (v.kind == Val::VIRTUAL && seen.insert(v.object).second) todo.push_back(v.object);
  };
  for (size_t i = 0; i < s.frames.size(); i++) {
    const VFrame &f = s.frames[i];
    bool last = i + 1 == s.frames.size();
    Mode how = last ? mode : IN_CALL;
    int at = last ? position : f.position;
    uint64_t live = f.method->live[how == REEXECUTE ? at : at + 1];
    if (last && fault("mode") && how != IN_CALL) how = how == REEXECUTE ? AFTER : REEXECUTE;
    w.tag(FRAME, 0, how), w.address(f.method->name), w.operand("i32", std::to_string(at + (last && fault("position"))));
    if (i == 0) w.tag(EXTRA, TYPED, 2), w.operand("i64", "%depth"); // how many frames are under the first
    std::vector<Val> locals(f.locals.size());
    std::vector<size_t> shown;
    for (size_t l = 0; l < locals.size(); l++) {
      if (!(live >> l & 1)) continue;
      auto before = f.before.find(l);
      locals[l] = fault("stale") && before != f.before.end() ? before->second : f.locals[l];
      shown.push_back(l);
    }
    if (fault("swap") && shown.size() > 1) std::swap(locals[shown[0]], locals[shown[1]]);
    for (size_t l = 0; l < locals.size(); l++) item(LOCAL, l, locals[l]);
    for (size_t k = fault("stack") && last; k < f.stack.size(); k++) item(STACK, k, f.stack[k]);
    for (const Val &m : f.monitors) item(MONITOR, m.kind == Val::VIRTUAL, m);
  }
  while (!todo.empty()) {
    int id = todo.back();
    todo.pop_back();
    const VObject &o = s.objects.at(id);
    const Class *c = o.cls;
    if (fault("class"))
      for (const Class *other : classes)
        if (other != c) c = other;
    size_t n = o.fields.size() - (fault("field") && !o.fields.empty());
    w.tag(OBJECT, 0, id), w.address(c->name), w.operand("i32", std::to_string(n));
    for (size_t k = 0; k < n; k++) item(FIELD, fields_at + sizeof(Value) * k, o.fields[k]);
  }
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

void State::replace(Val old, Val now) { // by value: they may be among those that are replaced
  for (const Place &p : places())
    if ((*this)[p] == old) (*this)[p] = now;
}

} // namespace tinyvm
