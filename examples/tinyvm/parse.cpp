// Programs are text, one item per line; `;` begins a comment:
//
//   class Point x y
//   method Main.main 0 2        ; number of arguments, number of locals (arguments first)
//     int 10 | double 0.5 | null
//     get 0 | set 0 | dup | pop
//     add | sub | mul | div | lt | le | eq
//   loop:
//     jump loop | if loop       ; if takes a value, and jumps unless it is 0, 0.0 or null
//     new Point | getfield x    ; getfield takes an object, and pushes the value of a field
//     putfield x                ; takes an object and, on top of it, a value
//     call Point.sum            ; takes arguments, the last on top
//     enter | exit              ; takes an object and locks its monitor; unlocks the one that this frame locked last
//     print | return
//
// A method's last argument is on top of the caller's stack. The depth of the stack and the number of monitors are known at each position, so
// the compiler has a name for each place.
#include "vm.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

namespace tinyvm {

namespace {

[[noreturn]] void bad(const std::string &where, const std::string &what) {
  fprintf(stderr, "tinyvm: %s: %s\n", where.c_str(), what.c_str());
  exit(2);
}

const char *const names[] = {"", "get", "set", "dup", "pop", "add", "sub", "mul", "div", "lt", "le", "eq", "jump", "if", "new", "getfield", "putfield", "call", "enter", "exit", "print", "return"};

// The numbers of values that an instruction pops and pushes.
void effect(const Instruction &i, int &pops, int &pushes) {
  switch (i.op) {
  case CONST: case GET: case NEW: pops = 0, pushes = 1; break;
  case DUP: pops = 1, pushes = 2; break;
  case SET: case POP: case IF: case ENTER: case PRINT: case RETURN: pops = 1, pushes = 0; break;
  case GETFIELD: pops = 1, pushes = 1; break;
  case PUTFIELD: pops = 2, pushes = 0; break;
  case CALL: pops = i.callee->args, pushes = 1; break;
  case JUMP: case EXIT: pops = pushes = 0; break;
  default: pops = 2, pushes = 1; // arithmetic
  }
}

bool falls_through(const Instruction &i) { return i.op != JUMP && i.op != RETURN; }
bool jumps(const Instruction &i) { return i.op == JUMP || i.op == IF; }

// Depths of stack and monitors, from the first position on.
void depths(Method *m) {
  size_t n = m->code.size();
  m->depth.assign(n, -1), m->held.assign(n, -1), m->header.assign(n, false);
  std::vector<size_t> todo{0};
  m->depth[0] = m->held[0] = 0;
  while (!todo.empty()) {
    size_t p = todo.back();
    todo.pop_back();
    const Instruction &i = m->code[p];
    int pops, pushes;
    effect(i, pops, pushes);
    std::string where = std::string(m->name) + " @ " + std::to_string(p);
    int depth = m->depth[p], held = m->held[p] + (i.op == ENTER) - (i.op == EXIT);
    if (depth < pops || held < 0 || (i.op == RETURN && held)) bad(where, "the stack or the monitors do not suffice");
    depth += pushes - pops;
    auto to = [&](size_t target) {
      if (target >= n) bad(where, "runs over the end");
      if (m->depth[target] < 0) m->depth[target] = depth, m->held[target] = held, todo.push_back(target);
      else if (m->depth[target] != depth || m->held[target] != held) bad(where, "two ways lead here with different stacks");
    };
    if (jumps(i) && size_t(i.a) <= p) m->header[i.a] = true;
    if (jumps(i)) to(i.a);
    if (falls_through(i)) to(p + 1);
  }
}

// Computes which locals may be read before they are set: backwards, up to a fixed point.
void liveness(Method *m) {
  size_t n = m->code.size();
  m->live.assign(n + 1, 0);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t p = n; p-- > 0;) {
      const Instruction &i = m->code[p];
      uint64_t live = (falls_through(i) ? m->live[p + 1] : 0) | (jumps(i) ? m->live[i.a] : 0);
      if (i.op == SET) live &= ~(1ull << i.a);
      if (i.op == GET) live |= 1ull << i.a;
      changed |= live != m->live[p];
      m->live[p] = live;
    }
  }
}

} // namespace

const char *name_of(Op op) { return op == CONST ? "const" : names[op]; }

void parse(const char *file) {
  std::ifstream in(file);
  if (!in) bad(file, "cannot be read");
  std::map<std::string, Method *> by_name;
  auto method = [&](const std::string &name) {
    Method *&m = by_name[name];
    if (!m) methods.push_back(m = new Method), m->name = keep(name);
    return m;
  };
  Method *current = nullptr;
  std::map<std::string, int> labels;
  struct Use { int position; std::string label, where; };
  std::vector<Use> uses;
  auto finish = [&] { // labels are local to a method
    for (auto &u : uses) {
      if (!labels.count(u.label)) bad(u.where, "no label " + u.label);
      current->code[u.position].a = labels[u.label];
    }
    labels.clear(), uses.clear();
  };
  std::string line;
  for (int number = 1; std::getline(in, line); number++) {
    std::string where = std::string(file) + ":" + std::to_string(number), word, name;
    std::istringstream words(line.substr(0, line.find(';')));
    if (!(words >> word)) continue;
    if (word == "class") {
      Class *c = new Class;
      if (!(words >> name)) bad(where, "a class needs a name");
      c->name = keep(name);
      while (words >> name) c->fields.push_back(keep(name));
      classes.push_back(c);
      continue;
    }
    if (word == "method") {
      if (current) finish();
      if (!(words >> name)) bad(where, "a method needs a name");
      current = method(name);
      if (!(words >> current->args >> current->locals) || current->args < 0 || current->args > current->locals || current->locals > max_locals) bad(where, "method NAME ARGS LOCALS");
      continue;
    }
    if (!current) bad(where, "no method begins before this");
    if (word.back() == ':') {
      labels[word.substr(0, word.size() - 1)] = current->code.size();
      continue;
    }
    Instruction i{};
    if (word == "int" || word == "double" || word == "null") {
      if (word != "null" && !(words >> name)) bad(where, "a number is missing");
      i.value = word == "int" ? box_int(strtol(name.c_str(), nullptr, 0)) : word == "double" ? box_double(strtod(name.c_str(), nullptr)) : null;
      current->code.push_back(i);
      continue;
    }
    size_t op = GET;
    while (op < sizeof names / sizeof *names && word != names[op]) op++;
    if (op == sizeof names / sizeof *names) bad(where, "no such instruction: " + word);
    i.op = static_cast<Op>(op);
    bool named = i.op == GET || i.op == SET || jumps(i) || i.op == NEW || i.op == GETFIELD || i.op == PUTFIELD || i.op == CALL;
    if (named && !(words >> name)) bad(where, word + " what?");
    if (i.op == GET || i.op == SET) i.a = atoi(name.c_str());
    if ((i.op == GET || i.op == SET) && (i.a < 0 || i.a >= current->locals)) bad(where, "no such local");
    if (jumps(i)) uses.push_back({static_cast<int>(current->code.size()), name, where});
    if (i.op == GETFIELD || i.op == PUTFIELD) i.name = keep(name);
    if (i.op == CALL) i.callee = method(name);
    if (i.op == NEW && !(i.cls = class_named(keep(name)))) bad(where, "no class " + name);
    current->code.push_back(i);
  }
  if (current) finish();
  for (Method *m : methods) {
    if (m->code.empty()) bad(m->name, "is called and not there");
    depths(m);
    liveness(m);
    m->types.assign(m->code.size(), std::vector<uint8_t>(m->locals));
  }
  if (!by_name.count("Main.main") || by_name["Main.main"]->args) bad(file, "no method Main.main without arguments");
}

} // namespace tinyvm
