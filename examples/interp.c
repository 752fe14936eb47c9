// The interpreter of a virtual machine. `make interp.ll` compiles it to IR: vm.layout.json maps the values of an exit of vm.c's
// compiled code to the parameters of this function, and reframe resumes in it.
#include "interp.h"

static int64_t saturated(int64_t v) { return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v; }

int64_t interpret(const struct instruction *code, int64_t pc, int64_t r0, int64_t r1, int64_t r2, int64_t r3) {
  int64_t r[REGISTERS] = {r0, r1, r2, r3};
  for (;;) {
    struct instruction i = code[pc++];
    switch (i.op) {
    case SET: r[i.a] = i.number; break;
    case COPY: r[i.a] = r[i.b]; break;
    case ADD: r[i.a] = saturated(r[i.a] + r[i.b]); break;
    case MUL: r[i.a] = saturated(r[i.a] * r[i.b]); break;
    case LESS:
      if (r[i.a] < r[i.b]) pc = i.number;
      break;
    default: return r[i.a];
    }
  }
}
