// Files for tests of frames: one with the frames of the plain interpreter, and one with those that deopt.cpp has rebuilt. Neither is of any use to the VM
// itself.
#include "../vm.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <map>

namespace tinyvm {

namespace {

// The log: one line of JSON for each arrival at a position, before its instruction runs. Objects are numbered in the order in which they are found, so
// the log does not depend on addresses.
struct Log {
  FILE *file = nullptr;
  long left = 0;
  std::map<Value, int> numbers;
  std::vector<Value> found;

  void value(Value v) {
    if (is_int(v)) fprintf(file, "{\"int\":%d}", static_cast<int32_t>(v));
    else if (v == null) fprintf(file, "null");
    else if (!is_ref(v)) fprintf(file, "{\"double\":\"%016" PRIx64 "\"}", v - double_offset);
    else {
      auto known = numbers.emplace(v, found.size());
      if (known.second) found.push_back(v);
      fprintf(file, "{\"ref\":%d}", known.first->second);
    }
  }

  void values(const char *name, const Value *v, size_t n, uint64_t dead = 0) {
    fprintf(file, ",\"%s\":[", name);
    for (size_t i = 0; i < n; i++) {
      if (i) fputs(",", file);
      if (i < 64 && dead >> i & 1) fputs("\"dead\"", file);
      else value(v[i]);
    }
    fputs("]", file);
  }

  // depth is the number of frames under the first; callee is the method that they wait for, or nullptr.
  void arrival(const std::vector<Frame> &frames, int64_t depth, const Method *callee) {
    if (left-- <= 0) return;
    numbers.clear(), found.clear();
    const Frame &top = frames.back();
    fprintf(file, "{\"fuel\":%ld,\"method\":\"%s\",\"position\":%d,\"depth\":%zu", tinyvm_fuel, top.method->name, top.position, depth + frames.size() - 1);
    if (callee) fprintf(file, ",\"call\":\"%s\"", callee->name);
    fputs(",\"frames\":[", file);
    for (size_t i = frames.size(); i-- > 0;) {
      const Frame &f = frames[i];
      fprintf(file, "{\"method\":\"%s\",\"position\":%d", f.method->name, f.position);
      values("locals", f.locals.data(), f.locals.size(), f.dead);
      values("stack", f.stack.data(), f.stack.size());
      values("monitors", f.monitors.data(), f.monitors.size());
      fputs(i ? "}," : "}", file);
    }
    fputs("],\"heap\":[", file);
    for (size_t i = 0; i < found.size(); i++) { // grows during the loop
      const Object *o = object(found[i]);
      fprintf(file, "%s{\"class\":\"%s\",\"lock\":%d", i ? "," : "", o->name, o->lock);
      values("fields", o->fields, o->count);
      fputs("}", file);
    }
    fputs("]}\n", file);
  }
};

void write(Log &log, const char *name, const std::vector<Frame> &frames, int64_t depth, const Method *callee) {
  if (!log.file) {
    log.file = fopen(name, "w");
    if (!log.file) perror(name), _Exit(1);
    log.left = options.log_limit;
  }
  log.arrival(frames, depth, callee);
}

} // namespace

static std::vector<std::pair<const std::vector<Frame> *, const Method *>> activations; // outermost first, with the callee of compiled code

Activation::Activation(const std::vector<Frame> *frames, const Method *callee) { activations.emplace_back(frames, callee); }
Activation::~Activation() { activations.pop_back(); }

void log_backtrace(const std::vector<Frame> &exit, int64_t depth, const Method *callee) {
  static Log log;
  write(log, options.backtrace, exit, depth, callee);
  for (size_t i = activations.size(); i-- > 0;) {
    depth -= activations[i].first->size();
    write(log, options.backtrace, *activations[i].first, depth, activations[i].second);
  }
}

void log_arrival(const std::vector<Frame> &frames, int64_t depth) {
  static Log arrivals;
  write(arrivals, options.log, frames, depth, nullptr);
}

void log_exit(const std::vector<Frame> &frames, int64_t depth, const Method *callee) {
  static Log exits;
  write(exits, options.log_exits, frames, depth, callee);
}

} // namespace tinyvm
