// held calls @work_held of the commit test with a unique number in each callee-saved register of arm64 (AAPCS64, 6.1). It returns the
// number of registers that differ after the return, or -1 if the result is not 55.
#define REGISTERS(f) f(19, 8) f(20, 9) f(21, 10) f(22, 11) f(23, 12) f(24, 13) f(25, 14) f(26, 15)
#define SET(x, d) "mov x" #x ", #" #x "\n fmov d" #d ", x" #x "\n"
#define HAS(x, d) "cmp x" #x ", #" #x "\n cinc x9, x9, ne\n fmov x10, d" #d "\n cmp x10, #" #x "\n cinc x9, x9, ne\n"

long held(void) {
  register long lost asm("x9");
  register long result asm("x0") = 5;
  asm volatile(REGISTERS(SET) "mov x27, #27\n mov x28, #28\n"
               "bl work_held\n"
               "mov x9, #0\n" REGISTERS(HAS) "cmp x27, #27\n cinc x9, x9, ne\n cmp x28, #28\n cinc x9, x9, ne\n"
               : "=r"(lost), "+r"(result)
               :
               : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x19",
                 "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", "d0", "d1", "d2", "d3", "d4", "d5", "d6",
                 "d7", "d8", "d9", "d10", "d11", "d12", "d13", "d14", "d15", "cc", "memory");
  return result == 55 ? lost : -1;
}
