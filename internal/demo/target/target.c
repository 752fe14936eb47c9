// The demo's target: a JIT host without a JIT. It carries an object that llc made of target.ll, loads it into
// fresh memory, registers it with the GDB JIT interface and runs it into its OSR exit. There it writes "ready",
// waits for a byte (or the end) of its standard input, lets the baseline code compute the sum, leaves the optimized function with that value,
// and writes "native 332833500". After an hour SIGALRM ends it wherever it is.
//
// With an argument it runs a method of orders.tvm, compiled by examples/tinyvm, up to "ready". It contains no interpreter that could
// continue, so it ends on request.
//
// It uses no library, so that the one small binary runs on any x86-64 Linux. demo/build.sh builds it.
#include "gdbjit.h"
#include "load.h"

#include <linux/prctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { N = 1000, LIMIT = 5000, DAYS = 2000, PAGE = 4096, HOUR = 3600 };

// The objects, in writable memory: loading one fills in sh_addr.
__asm__(".pushsection .data\n"
        ".balign 16\n"
        "object: .incbin \"target.o\"\n"
        "object_end:\n"
        ".balign 16\n"
        "orders: .incbin \"orders.o\"\n"
        "orders_end:\n"
        ".popsection");
extern char object[], object_end[], orders[], orders_end[];

static long syscall6(long number, long a, long b, long c, long d, long e, long f) {
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

static long syscall3(long number, long a, long b, long c) { return syscall6(number, a, b, c, 0, 0, 0); }

static void print(int fd, const char *text) {
  size_t n = 0;
  while (text[n]) n++;
  syscall3(SYS_write, fd, (long)text, n);
}

static _Noreturn void quit(int status) {
  for (;;) syscall3(SYS_exit_group, status, 0, 0);
}

static _Noreturn void die(const char *why) {
  print(2, "demo target: ");
  print(2, why);
  print(2, "\n");
  quit(1);
}

// call_optimized(f, a, b) returns f(a, b). While f runs, leave_optimized(value) abandons it, and whatever it
// called, and makes call_optimized return value: no code follows the call of an exit that could take a result. It saves the callee-saved
// registers on its stack, because an abandoned f does not restore those that it saved. One activation at a time.
uint64_t call_optimized(uint64_t f, uint64_t a, uint64_t b);
_Noreturn void leave_optimized(uint64_t value);
uint64_t optimized_rsp;
__asm__(".pushsection .text\n"
        ".globl call_optimized, leave_optimized\n"
        ".type call_optimized, @function\n"
        ".type leave_optimized, @function\n"
        "call_optimized:\n"
        "  .cfi_startproc\n"
        "  push %rbp\n  .cfi_adjust_cfa_offset 8\n  .cfi_rel_offset %rbp, 0\n"
        "  push %rbx\n  .cfi_adjust_cfa_offset 8\n  .cfi_rel_offset %rbx, 0\n"
        "  push %r12\n  .cfi_adjust_cfa_offset 8\n  .cfi_rel_offset %r12, 0\n"
        "  push %r13\n  .cfi_adjust_cfa_offset 8\n  .cfi_rel_offset %r13, 0\n"
        "  push %r14\n  .cfi_adjust_cfa_offset 8\n  .cfi_rel_offset %r14, 0\n"
        "  push %r15\n  .cfi_adjust_cfa_offset 8\n  .cfi_rel_offset %r15, 0\n"
        "  sub $8, %rsp\n  .cfi_adjust_cfa_offset 8\n" // the ABI's alignment
        "  mov %rsp, optimized_rsp(%rip)\n"
        "  mov %rdi, %rax\n"
        "  mov %rsi, %rdi\n"
        "  mov %rdx, %rsi\n"
        "  call *%rax\n"
        ".Lreturn:\n"
        "  add $8, %rsp\n  .cfi_adjust_cfa_offset -8\n"
        "  pop %r15\n  .cfi_adjust_cfa_offset -8\n  .cfi_restore %r15\n"
        "  pop %r14\n  .cfi_adjust_cfa_offset -8\n  .cfi_restore %r14\n"
        "  pop %r13\n  .cfi_adjust_cfa_offset -8\n  .cfi_restore %r13\n"
        "  pop %r12\n  .cfi_adjust_cfa_offset -8\n  .cfi_restore %r12\n"
        "  pop %rbx\n  .cfi_adjust_cfa_offset -8\n  .cfi_restore %rbx\n"
        "  pop %rbp\n  .cfi_adjust_cfa_offset -8\n  .cfi_restore %rbp\n"
        "  ret\n"
        "  .cfi_endproc\n"
        ".size call_optimized, .-call_optimized\n"
        "leave_optimized:\n"
        "  .cfi_startproc\n"
        "  mov %rdi, %rax\n"
        "  mov optimized_rsp(%rip), %rsp\n"
        "  .cfi_undefined %rip\n" // its caller's frame no longer exists
        "  jmp .Lreturn\n"
        "  .cfi_endproc\n"
        ".size leave_optimized, .-leave_optimized\n"
        ".popsection");

static uint64_t (*baseline)(uint64_t); // 0 while the virtual machine's method runs

// The runtime's part of an OSR exit. LLVM calls it by this name; its argument is the one that the IR gave to
// @llvm.experimental.deoptimize.
_Noreturn void __llvm_deoptimize(int reason) {
  char byte;
  (void)reason;
  print(1, "ready\n");
  syscall3(SYS_read, 0, (long)&byte, 1);
  if (!baseline) quit(0);
  leave_optimized(baseline(N));
}

// Referenced by tinyvm's code: the number of backward jumps and calls that it may make.
static long tinyvm_fuel = 100000;

static uint64_t resolve(const char *name) {
  static const struct { const char *name; void *address; } host[] = {
    {"__llvm_deoptimize", __llvm_deoptimize}, {"call_optimized", call_optimized}, {"tinyvm_fuel", &tinyvm_fuel},
  };
  for (size_t i = 0; i < sizeof host / sizeof host[0]; i++) {
    const char *a = host[i].name, *b = name;
    while (*a && *a == *b) a++, b++;
    if (*a == *b) return (uint64_t)host[i].address;
  }
  return 0;
}

static void load_and_register(char *object, char *end) {
  static const int protection[GROUPS] = {PROT_READ | PROT_EXEC, PROT_READ, PROT_READ | PROT_WRITE};
  static struct jit_code_entry entry;
  struct layout l = lay_out(object, PAGE);
  // The low 2 GiB, where this program is too: the object's calls into it reach that far.
  long memory = syscall6(SYS_mmap, 0, l.offset[GROUPS], PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  if (memory < 0 && memory > -PAGE) die("mmap failed");
  if (load(object, (void *)memory, resolve)) die("the object has a relocation or symbol that is not provided for");
  for (int g = 0; g < GROUPS; g++) {
    size_t size = l.offset[g + 1] - l.offset[g];
    if (size && syscall3(SYS_mprotect, memory + l.offset[g], size, protection[g])) die("mprotect failed");
  }
  entry.symfile_addr = object;
  entry.symfile_size = end - object;
  jit_register(&entry);
}

static void print_result(uint64_t value) {
  char digits[24] = {0}, *p = digits + sizeof digits - 2;
  *p = '\n';
  do *--p = '0' + value % 10;
  while (value /= 10);
  print(1, "native ");
  print(1, p);
}

// tinyvm stores the names of classes, fields and methods at fixed addresses, which the code contains: at the start of its heap, in the order
// of orders.tvm, each at a multiple of 16.
static void put_names(void) {
  static const char names[][16] = {"Order", "price", "count", "discount", "Main.main", "Shop.total", "Order.total"};
  char *heap = (char *)0x100000000000;
  long got = syscall6(SYS_mmap, (long)heap, sizeof names, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got != (long)heap) die("the heap's address is not free");
  for (size_t i = 0; i < sizeof names; i++) heap[i] = ((const char *)names)[i];
}

static void run_method(void) {
  uint64_t arguments[] = {0xffffull << 48 | DAYS}; // an int in tinyvm's boxes
  put_names();
  load_and_register(orders, orders_end);
  uint64_t method = function_address(orders, "Shop.total#1");
  if (!method) die("the object lacks the method");
  call_optimized(method, 0, (uint64_t)arguments);
  die("the method has returned");
}

__attribute__((used)) static _Noreturn void run(long arguments) {
  syscall3(SYS_prctl, PR_SET_NAME, (long)(arguments > 1 ? "demo-vm" : "demo-target"), 0);
  syscall3(SYS_alarm, HOUR, 0, 0); // a target that was left running (reframe demo --keep) ends by itself
  // Yama lets only ancestors trace a process, and the one who controls it is a sibling (doc/dev/rationale.md). It fails without Yama.
  syscall3(SYS_prctl, PR_SET_PTRACER, (long)PR_SET_PTRACER_ANY, 0);
  if (arguments > 1) run_method();
  load_and_register(object, object_end);
  baseline = (uint64_t(*)(uint64_t))function_address(object, "sum");
  uint64_t (*main_jit)(uint64_t, uint64_t) = (uint64_t(*)(uint64_t, uint64_t))function_address(object, "main_jit");
  if (!baseline || !main_jit) die("the object lacks a function");
  print_result(main_jit(N, LIMIT));
  quit(0);
}

// The outermost frame: it has no return address.
__asm__(".pushsection .text\n"
        ".globl _start\n"
        ".type _start, @function\n"
        "_start:\n"
        "  .cfi_startproc\n"
        "  .cfi_undefined %rip\n"
        "  xor %ebp, %ebp\n"
        "  mov (%rsp), %rdi\n" // the number of arguments, with the program's name
        "  and $-16, %rsp\n"
        "  call run\n"
        "  ud2\n"
        "  .cfi_endproc\n"
        ".size _start, .-_start\n"
        ".popsection");
