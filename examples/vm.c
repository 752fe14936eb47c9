// A virtual machine with an interpreter (interp.c) and a JIT (here, LLVM's C API, LLVM 19):
//
//   vm            compiles a function of byte code, runs it, and waits at the exit of the compiled code
//   vm run        does not wait: the interpreter finishes, and the result is printed
//   vm wrong      as run, but the exits record r1 for r2: the result is right, because the runtime uses the arguments, and reframe verify finds it
//
// The compiled code guesses that every number fits in 32 bits. Otherwise it exits through LLVM's deoptimize, and the interpreter runs
// that instruction and all that follow. For reframe an exit is a call of interpret(): vm.layout.json maps the values of the exit to its
// parameters, and interp.ll is the interpreter, compiled to IR.
#include "interp.h"
#include "leave.h"

#include <llvm-c/Core.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/LLJITUtils.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The sum of the squares below r0.
static const struct instruction squares[] = {
    {SET, 1, 0, 0},  // 0  r1 = 0
    {SET, 2, 0, 0},  // 1  r2 = 0
    {COPY, 3, 1, 0}, // 2  r3 = r1
    {MUL, 3, 1, 0},  // 3  r3 *= r1
    {ADD, 2, 3, 0},  // 4  r2 += r3
    {SET, 3, 0, 1},  // 5  r3 = 1
    {ADD, 1, 3, 0},  // 6  r1 += r3
    {LESS, 1, 0, 2}, // 7  if r1 < r0, go to 2
    {RET, 2, 0, 0},  // 8  return r2
};
enum { INSTRUCTIONS = sizeof squares / sizeof squares[0], ARGUMENT = 3000 };

static int waits = 1, wrong;

// The exit of compiled code. Its arguments are those of the call in the IR.
_Noreturn void __llvm_deoptimize(const struct instruction *code, int64_t pc, int64_t r0, int64_t r1, int64_t r2, int64_t r3) {
  if (waits) {
    printf("pid %d stopped at an exit, at instruction %ld\n", getpid(), (long)pc);
    fflush(stdout);
    sleep(600);
    exit(0);
  }
  leave_optimized(interpret(code, pc, r0, r1, r2, r3));
}

static void check(LLVMErrorRef e) {
  if (!e) return;
  fprintf(stderr, "vm: %s\n", LLVMGetErrorMessage(e));
  exit(1);
}

struct compiler {
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMBuilderRef at;
  LLVMTypeRef i64;
  LLVMValueRef function, code, r[REGISTERS]; // registers are variables; a pass turns them into SSA values
  LLVMBasicBlockRef block[INSTRUCTIONS];     // of each instruction
};

static LLVMValueRef number(struct compiler *c, int64_t value) { return LLVMConstInt(c->i64, value, 1); }

static LLVMValueRef get(struct compiler *c, int r) { return LLVMBuildLoad2(c->at, c->i64, c->r[r], "v"); }

// Exits to the interpreter at instruction pc with all registers: as arguments of the call, for the runtime, and as its deopt bundle, for
// the stack map.
static void leave(struct compiler *c, int64_t pc) {
  const char *name = "llvm.experimental.deoptimize";
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  LLVMValueRef state[2 + REGISTERS] = {c->code, number(c, pc)}, bundled[2 + REGISTERS];
  for (int r = 0; r < REGISTERS; r++) state[2 + r] = get(c, r);
  memcpy(bundled, state, sizeof state);
  if (wrong) bundled[2 + 1] = state[2 + 2], bundled[2 + 2] = state[2 + 1];
  LLVMOperandBundleRef bundle = LLVMCreateOperandBundle("deopt", strlen("deopt"), bundled, 2 + REGISTERS);
  LLVMBuildRet(c->at, LLVMBuildCallWithOperandBundles(c->at, LLVMIntrinsicGetType(c->context, id, &c->i64, 1),
                                                      LLVMGetIntrinsicDeclaration(c->module, id, &c->i64, 1), state, 2 + REGISTERS, &bundle, 1, "left"));
}

// a += b or a *= b, if the result fits in 32 bits; otherwise an exit to the interpreter.
static void arithmetic(struct compiler *c, const struct instruction *code, int pc) {
  const struct instruction *i = &code[pc];
  LLVMValueRef a = get(c, i->a), b = get(c, i->b);
  LLVMValueRef v = i->op == ADD ? LLVMBuildAdd(c->at, a, b, "sum") : LLVMBuildMul(c->at, a, b, "product");
  LLVMTypeRef i32 = LLVMInt32TypeInContext(c->context);
  LLVMValueRef low = LLVMBuildSExt(c->at, LLVMBuildTrunc(c->at, v, i32, ""), c->i64, "");
  LLVMBasicBlockRef exit = LLVMAppendBasicBlockInContext(c->context, c->function, "exit");
  LLVMBasicBlockRef fits = LLVMAppendBasicBlockInContext(c->context, c->function, "fits");
  LLVMBuildCondBr(c->at, LLVMBuildICmp(c->at, LLVMIntEQ, v, low, "guess"), fits, exit);
  LLVMPositionBuilderAtEnd(c->at, exit);
  leave(c, pc);
  LLVMPositionBuilderAtEnd(c->at, fits);
  LLVMBuildStore(c->at, v, c->r[i->a]);
}

static void compile(struct compiler *c, const struct instruction *code) {
  c->function = LLVMAddFunction(c->module, "compiled", LLVMFunctionType(c->i64, &c->i64, 1, 0));
  LLVMSetValueName2(LLVMGetParam(c->function, 0), "argument", strlen("argument"));
  LLVMSetGC(c->function, "statepoint-example"); // so that a deoptimize becomes a statepoint, which has a record
  LLVMPositionBuilderAtEnd(c->at, LLVMAppendBasicBlockInContext(c->context, c->function, "entry"));
  for (int r = 0; r < REGISTERS; r++) {
    const char name[] = {'r', '0' + r, 0};
    c->r[r] = LLVMBuildAlloca(c->at, c->i64, name);
    LLVMBuildStore(c->at, r ? number(c, 0) : LLVMGetParam(c->function, 0), c->r[r]);
  }
  for (int pc = 0; pc < INSTRUCTIONS; pc++) c->block[pc] = LLVMAppendBasicBlockInContext(c->context, c->function, "instruction");
  LLVMBuildBr(c->at, c->block[0]);
  for (int pc = 0; pc < INSTRUCTIONS; pc++) {
    const struct instruction *i = &code[pc];
    LLVMPositionBuilderAtEnd(c->at, c->block[pc]);
    switch (i->op) {
    case SET: LLVMBuildStore(c->at, number(c, i->number), c->r[i->a]); break;
    case COPY: LLVMBuildStore(c->at, get(c, i->b), c->r[i->a]); break;
    case ADD:
    case MUL: arithmetic(c, code, pc); break;
    case LESS:
      LLVMBuildCondBr(c->at, LLVMBuildICmp(c->at, LLVMIntSLT, get(c, i->a), get(c, i->b), "less"), c->block[i->number], c->block[pc + 1]);
      continue;
    default: LLVMBuildRet(c->at, get(c, i->a)); continue;
    }
    LLVMBuildBr(c->at, c->block[pc + 1]);
  }
}

// Passes run first, and then the module is written, as the code generator will see it.
static LLVMErrorRef optimize_and_dump(void *unused, LLVMModuleRef m) {
  (void)unused;
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  LLVMErrorRef e = LLVMRunPasses(m, "function(mem2reg,simplifycfg),rewrite-statepoints-for-gc", NULL, options);
  LLVMDisposePassBuilderOptions(options);
  char *message = NULL;
  if (!e && LLVMPrintModuleToFile(m, "vm.ll", &message)) return LLVMCreateStringError(message);
  return e;
}

static LLVMErrorRef transform(void *unused, LLVMOrcThreadSafeModuleRef *m, LLVMOrcMaterializationResponsibilityRef r) {
  (void)r;
  return LLVMOrcThreadSafeModuleWithModuleDo(*m, optimize_and_dump, unused);
}

int main(int argc, char **argv) {
  wrong = argc == 2 && !strcmp(argv[1], "wrong");
  waits = argc == 1;
  if (argc > 2 || (argc == 2 && !wrong && strcmp(argv[1], "run"))) {
    fprintf(stderr, "usage: vm [run|wrong]\n");
    return 64;
  }
  LLVMInitializeNativeTarget();
  LLVMInitializeNativeAsmPrinter();
  LLVMOrcLLJITRef jit;
  check(LLVMOrcCreateLLJIT(&jit, NULL));
  check(LLVMOrcLLJITEnableDebugSupport(jit));
  LLVMOrcIRTransformLayerSetTransform(LLVMOrcLLJITGetIRTransformLayer(jit), transform, NULL);
  LLVMOrcCSymbolMapPair provided[] = {
      {LLVMOrcLLJITMangleAndIntern(jit, "squares"), {(uint64_t)squares, {LLVMJITSymbolGenericFlagsExported, 0}}},
      {LLVMOrcLLJITMangleAndIntern(jit, "__llvm_deoptimize"), {(uint64_t)__llvm_deoptimize, {LLVMJITSymbolGenericFlagsExported | LLVMJITSymbolGenericFlagsCallable, 0}}},
  };
  check(LLVMOrcJITDylibDefine(LLVMOrcLLJITGetMainJITDylib(jit), LLVMOrcAbsoluteSymbols(provided, 2)));

  LLVMOrcThreadSafeContextRef context = LLVMOrcCreateNewThreadSafeContext();
  struct compiler c = {.context = LLVMOrcThreadSafeContextGetContext(context)};
  c.module = LLVMModuleCreateWithNameInContext("vm", c.context);
  LLVMSetTarget(c.module, LLVMOrcLLJITGetTripleString(jit));
  LLVMSetDataLayout(c.module, LLVMOrcLLJITGetDataLayoutStr(jit));
  c.at = LLVMCreateBuilderInContext(c.context);
  c.i64 = LLVMInt64TypeInContext(c.context);
  c.code = LLVMAddGlobal(c.module, LLVMInt8TypeInContext(c.context), "squares"); // compiled byte code
  compile(&c, squares);
  LLVMDisposeBuilder(c.at);
  check(LLVMOrcLLJITAddLLVMIRModule(jit, LLVMOrcLLJITGetMainJITDylib(jit), LLVMOrcCreateNewThreadSafeModule(c.module, context)));

  LLVMOrcExecutorAddress compiled;
  check(LLVMOrcLLJITLookup(jit, &compiled, "compiled"));
  printf("%ld\n", (long)call_optimized((int64_t(*)(int64_t))compiled, ARGUMENT));
  check(LLVMOrcDisposeLLJIT(jit));
  return 0;
}
