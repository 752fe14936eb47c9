// A virtual machine of four registers, which hold 32-bit integers. Sums and products saturate.
#include <stdint.h>

enum op {
  SET,  // a = number
  COPY, // a = b
  ADD,  // a += b
  MUL,  // a *= b
  LESS, // if a < b, go to instruction number
  RET,  // return a
};

enum { REGISTERS = 4 };

struct instruction {
  uint8_t op, a, b; // a, b: registers
  int32_t number;
};

// Runs code from instruction pc on, with these registers, up to RET. A call starts at 0, with its argument in r0; an exit of
// optimized code starts it in the middle.
int64_t interpret(const struct instruction *code, int64_t pc, int64_t r0, int64_t r1, int64_t r2, int64_t r3);
