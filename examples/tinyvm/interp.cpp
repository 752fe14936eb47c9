// The plain interpreter defines the meaning of a program. It does not use stack maps, so other tiers are compared with its log (testing/log.cpp).
#include "vm.h"

#include <cstddef>

namespace tinyvm {

namespace {

Value error(const Frame &f, const char *what) { return stop(std::string("error: ") + what + " in " + f.method->name + " @ " + std::to_string(f.position)); }

bool spend() { // of fuel
  if (tinyvm_fuel <= 0) return stop("out of fuel"), false;
  tinyvm_fuel--;
  return true;
}

Frame enter(Method *m, const Value *args) {
  Frame f{};
  f.method = m;
  f.locals.assign(args, args + m->args);
  f.locals.resize(m->locals, null);
  m->interpreted++;
  return f;
}

} // namespace

// The layout interpreter.star reads these from memory. A vector begins with the addresses of its first element and of its end.
static_assert(offsetof(Frame, method) == 0 && offsetof(Frame, position) == 8 && offsetof(Frame, locals) == 16 && offsetof(Frame, stack) == 40);
static_assert(offsetof(Frame, monitors) == 64 && offsetof(Frame, dead) == 88 && offsetof(Frame, waits) == 96 && sizeof(Frame) == 104);
static_assert(offsetof(Method, name) == 0 && sizeof(std::vector<Frame>) == 24);

Value interpret(std::vector<Frame> frames, int64_t depth, bool returned, Value result) {
  Activation a(&frames);
  return tinyvm_interpret(&frames, depth, returned, result);
}

} // namespace tinyvm

using namespace tinyvm;

extern "C" uint64_t tinyvm_run(std::vector<Frame> *all, int64_t depth, bool returned, Value result) {
  std::vector<Frame> &frames = *all;
  for (;;) {
    Frame &f = frames.back();
    std::vector<Value> &stack = f.stack;
    auto pop = [&] {
      Value v = stack.back();
      stack.pop_back();
      return v;
    };
    if (returned) { // the call at f's position has returned
      returned = f.waits = false;
      if (tinyvm_stopped) return null;
      Instruction &i = f.method->code[f.position];
      i.notes.result |= saw(result);
      stack.push_back(result);
      f.position++;
    }
    if (options.log) log_arrival(frames, depth);
    if (serving) stepped(frames);
    Instruction &i = f.method->code[f.position];
    Notes &notes = i.notes;
    size_t n = stack.size();
    if (f.method->header[f.position])
      for (size_t l = 0; l < f.locals.size(); l++) f.method->types[f.position][l] |= saw(f.locals[l]);
    switch (i.op) {
    case CONST: stack.push_back(i.value); break;
    case GET: stack.push_back(f.locals[i.a]); break;
    case SET:
      f.locals[i.a] = pop();
      f.dead &= ~(1ull << i.a);
      break;
    case DUP: stack.push_back(stack.back()); break;
    case POP: pop(); break;
    case JUMP:
    case IF: {
      bool taken = i.op == JUMP;
      if (i.op == IF) {
        notes.a |= saw(stack.back());
        taken = truth(stack.back());
      }
      if (taken && i.a <= f.position && !spend()) return null;
      if (i.op == IF) {
        pop();
        taken ? notes.taken++ : notes.not_taken++;
      }
      f.position = taken ? i.a : f.position + 1;
      continue;
    }
    case NEW: stack.push_back(reference(allocate(i.cls))); break;
    case GETFIELD:
    case PUTFIELD: {
      Value &owner = stack[n - (i.op == GETFIELD ? 1 : 2)];
      Object *o = object(owner);
      const Class *c = o ? class_of(o) : nullptr;
      int at = c ? c->find(i.name) : -1;
      notes.a |= saw(owner);
      if (at < 0) return error(f, "no such field");
      notes.classes |= notes.cls && notes.cls != c;
      notes.cls = c;
      if (i.op == GETFIELD) {
        owner = o->fields[at];
        notes.result |= saw(owner);
      } else {
        o->fields[at] = pop();
        stored(&o->fields[at], sizeof(Value));
        mark_card(stack.back());
        pop();
      }
      break;
    }
    case ENTER: {
      notes.a |= saw(stack.back());
      Object *o = object(stack.back());
      if (!o) return error(f, "no object to hold");
      o->lock++;
      stored(&o->lock, sizeof o->lock);
      f.monitors.push_back(pop());
      break;
    }
    case EXIT:
      if (Object *o = object(f.monitors.back())) { // which it always is, unless a bundle was wrong
        o->lock--;
        stored(&o->lock, sizeof o->lock);
      }
      f.monitors.pop_back();
      break;
    case PRINT: print(pop()); break;
    case CALL: {
      if (depth + static_cast<int64_t>(frames.size()) >= max_depth) return error(f, "the stack is full");
      if (!spend()) return null;
      Method *m = i.callee;
      std::vector<Value> args(stack.end() - m->args, stack.end());
      stack.resize(n - m->args);
      f.waits = true;
      if (!options.interpret && m->interpreted >= options.jit && !m->compiled) compile(m);
      if (m->compiled) {
        result = tinyvm_enter(m->compiled, depth + frames.size(), args.data());
        returned = true;
      } else {
        frames.push_back(enter(m, args.data()));
      }
      continue;
    }
    case RETURN:
      result = pop();
      frames.pop_back();
      if (frames.empty()) return result;
      returned = true;
      continue;
    default: { // arithmetic
      notes.a |= saw(stack[n - 2]), notes.b |= saw(stack[n - 1]);
      Value v = arithmetic(i.op, stack[n - 2], stack[n - 1]);
      if (v == trap) return error(f, "no numbers");
      notes.result |= saw(v);
      stack.resize(n - 2);
      stack.push_back(v);
    }
    }
    f.position++;
  }
}

namespace tinyvm {

Value call(Method *m, int64_t depth, const Value *args) {
  if (!options.interpret && m->interpreted >= options.jit && !m->compiled) compile(m);
  if (m->compiled) return tinyvm_enter(m->compiled, depth, args);
  return interpret({enter(m, args)}, depth);
}

} // namespace tinyvm
