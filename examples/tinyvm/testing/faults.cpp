// Wrong bundles, selected by --fault NAME: tests require that they are found. Four more faults are in the code, in compile.cpp: fault("constant"),
// fault("guard"), fault("barrier") and fault("early").
#include "../state.h"

namespace tinyvm {

bool fault(const char *name) { return options.fault == name; }

void spoil(Described &d) {
  for (Described::Scope &f : d.frames) {
    std::vector<size_t> shown;
    for (size_t l = 0; l < f.locals.size(); l++) {
      if (f.locals[l].kind == Val::DEAD) continue;
      auto before = f.of->before.find(l);
      if (fault("stale") && before != f.of->before.end()) f.locals[l] = before->second;
      shown.push_back(l);
    }
    if (fault("swap") && shown.size() > 1) std::swap(f.locals[shown[0]], f.locals[shown[1]]);
  }
  Described::Scope &last = d.frames.back();
  if (fault("mode") && last.mode != IN_CALL) last.mode = last.mode == REEXECUTE ? AFTER : REEXECUTE;
  last.position += fault("position");
  last.left_out = fault("stack");
  if (fault("monitor") && !last.monitors.empty()) last.monitors.pop_back();
  auto other = [](std::vector<Val> &values) {
    for (Val &v : values) v.object += v.kind == Val::VIRTUAL;
  };
  if (fault("object"))
    for (Described::Scope &f : d.frames) other(f.locals), other(f.stack), other(f.monitors);
  for (auto &o : d.objects) {
    const Class *right = o.second.cls;
    if (fault("class"))
      for (const Class *c : classes)
        if (c != right) o.second.cls = c;
    if (fault("field") && !o.second.fields.empty()) o.second.fields.pop_back();
    if (fault("object")) other(o.second.fields);
    if (fault("history"))
      for (auto &b : o.second.before) o.second.fields[b.first] = b.second;
  }
}

} // namespace tinyvm
