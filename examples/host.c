// A small JIT on LLVM's C API (LLVM 14 or 19), with one function for each kind of site that leaves a stack map record:
//
//   host-c stackmap|patchpoint|statepoint|deoptimize [run]
//
// compiles int64_t work(int64_t n), the sum of the squares below n, calls work(1000), and prints the result. Without `run`
// it waits at i = 26, inside a call that the compiled code made, prints its pid, and ends after ten minutes.
//
// What a host does for reframe is marked with numbers; doc/user/host.md explains them in that order. LLVM 14 has no operand bundles
// in its C API, so with it only the first two kinds are available.
#include "runtime.h"

#include <llvm-c/Core.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/OrcEE.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <llvm/Config/llvm-config.h>
#if LLVM_VERSION_MAJOR >= 19
#include <llvm-c/LLJITUtils.h> // LLVMOrcLLJITEnableDebugSupport
#else
#include <llvm-c/ExecutionEngine.h> // LLVMCreateGDBRegistrationListener
#define LLVMOrcCSymbolMapPair LLVMJITCSymbolMapPair
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The front end.

static void check(LLVMErrorRef e) {
  if (!e) return;
  fprintf(stderr, "host-c: %s\n", LLVMGetErrorMessage(e));
  exit(1);
}

enum kind { STACKMAP, PATCHPOINT, STATEPOINT, DEOPTIMIZE, NONE };
static const char *const kinds[] = {"stackmap", "patchpoint", "statepoint", "deoptimize"};

// State for building one function.
struct builder {
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMBuilderRef at;
  LLVMTypeRef i32, i64, pointer, nothing;
  LLVMValueRef n, i, acc;
};

static LLVMValueRef number(struct builder *b, int64_t value) { return LLVMConstInt(b->i64, value, 1); }

// callee returns the function with a name, and declares it on the first call.
static LLVMValueRef callee(struct builder *b, const char *name, LLVMTypeRef type) {
  LLVMValueRef f = LLVMGetNamedFunction(b->module, name);
  return f ? f : LLVMAddFunction(b->module, name, type);
}

static LLVMValueRef intrinsic(struct builder *b, const char *name, LLVMTypeRef *types, size_t count, LLVMTypeRef *type) {
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  *type = LLVMIntrinsicGetType(b->context, id, types, count);
  return LLVMGetIntrinsicDeclaration(b->module, id, types, count);
}

// A stackmap is a point in the code: it calls nothing. Here it is right after a call, so a frame that waits in the call is at the
// stackmap.
static LLVMValueRef with_stackmap(struct builder *b) {
  LLVMTypeRef tick = LLVMFunctionType(b->nothing, &b->i64, 1, 0), type;
  LLVMBuildCall2(b->at, tick, callee(b, "tick", tick), &b->i, 1, "");
  LLVMValueRef f = intrinsic(b, "llvm.experimental.stackmap", NULL, 0, &type);
  LLVMValueRef args[] = {number(b, 1) /* id */, LLVMConstInt(b->i32, 0, 0) /* nops */, b->i, b->acc, b->n};
  LLVMBuildCall2(b->at, type, f, args, 5, "");
  return LLVMBuildMul(b->at, b->i, b->i, "sq");
}

// A patchpoint is itself a call: 13 bytes here, in a region of 16 that the runtime may overwrite.
static LLVMValueRef with_patchpoint(struct builder *b) {
  LLVMTypeRef square = LLVMFunctionType(b->i64, &b->i64, 1, 0), type;
#if LLVM_VERSION_MAJOR >= 18 // the result's type is part of the name; before, there are two of them
  LLVMValueRef f = intrinsic(b, "llvm.experimental.patchpoint", &b->i64, 1, &type);
#else
  LLVMValueRef f = intrinsic(b, "llvm.experimental.patchpoint.i64", NULL, 0, &type);
#endif
  LLVMValueRef target = LLVMConstBitCast(callee(b, "square", square), b->pointer);
  LLVMValueRef args[] = {number(b, 2) /* id */, LLVMConstInt(b->i32, 16, 0) /* bytes */, target,
                         LLVMConstInt(b->i32, 1, 0) /* arguments of the call */, b->i, b->i, b->acc, b->n};
  return LLVMBuildCall2(b->at, type, f, args, 8, "sq");
}

#if LLVM_VERSION_MAJOR >= 18
// deopt describes the interpreter's frame at a call. reframe shows these values as deopt 0, 1 …
static LLVMOperandBundleRef deopt(LLVMValueRef *values, unsigned count) {
  return LLVMCreateOperandBundle("deopt", strlen("deopt"), values, count);
}

// An ordinary call with a "deopt" bundle; rewrite-statepoints-for-gc makes a statepoint of it.
static LLVMValueRef with_statepoint(struct builder *b) {
  LLVMTypeRef square = LLVMFunctionType(b->i64, &b->i64, 1, 0);
  LLVMValueRef values[] = {b->i, b->acc, b->n};
  LLVMOperandBundleRef bundle = deopt(values, 3);
  return LLVMBuildCallWithOperandBundles(b->at, square, callee(b, "square", square), &b->i, 1, &bundle, 1, "sq");
}

// A guess that the sum stays below a limit. If it is wrong, the frame is left for good; the layout selects the place where the
// interpreter resumes by the first deopt value.
static void with_guard(struct builder *b, LLVMValueRef f) {
  LLVMTypeRef type;
  LLVMBasicBlockRef left = LLVMAppendBasicBlockInContext(b->context, f, "exit");
  LLVMBasicBlockRef on = LLVMAppendBasicBlockInContext(b->context, f, "on");
  LLVMValueRef right = LLVMBuildICmp(b->at, LLVMIntULT, b->acc, number(b, LIMIT), "guess");
  LLVMBuildCondBr(b->at, right, on, left);
  LLVMPositionBuilderAtEnd(b->at, left);
  LLVMValueRef deoptimize = intrinsic(b, "llvm.experimental.deoptimize", &b->i64, 1, &type);
  LLVMValueRef reason = number(b, 3), values[] = {reason, b->i, b->acc, b->n};
  LLVMOperandBundleRef bundle = deopt(values, 4);
  LLVMBuildRet(b->at, LLVMBuildCallWithOperandBundles(b->at, type, deoptimize, &reason, 1, &bundle, 1, "d"));
  LLVMPositionBuilderAtEnd(b->at, on);
}
#endif

// Builds int64_t NAME(int64_t n), a loop that sums squares, with a site of one kind in it.
static void build(struct builder *b, const char *name, enum kind kind) {
  LLVMValueRef f = LLVMAddFunction(b->module, name, LLVMFunctionType(b->i64, &b->i64, 1, 0));
  LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(b->context, f, "entry");
  LLVMBasicBlockRef loop = LLVMAppendBasicBlockInContext(b->context, f, "loop");
  b->n = LLVMGetParam(f, 0);
  LLVMSetValueName2(b->n, "n", 1); // (1) names: reframe shows the slots under these names
  LLVMPositionBuilderAtEnd(b->at, entry);
  LLVMBuildBr(b->at, loop);
  LLVMPositionBuilderAtEnd(b->at, loop);
  b->i = LLVMBuildPhi(b->at, b->i64, "i");
  b->acc = LLVMBuildPhi(b->at, b->i64, "acc");
  LLVMValueRef sq;
  switch (kind) {
  case STACKMAP: sq = with_stackmap(b); break;
  case PATCHPOINT: sq = with_patchpoint(b); break;
#if LLVM_VERSION_MAJOR >= 18
  case STATEPOINT:
    LLVMSetGC(f, "statepoint-example"); // the pass processes only functions with a gc
    sq = with_statepoint(b);
    break;
  case DEOPTIMIZE:
    LLVMSetGC(f, "statepoint-example");
    with_guard(b, f);
#endif
    // fall through
  default: sq = LLVMBuildMul(b->at, b->i, b->i, "sq");
  }
  LLVMValueRef acc1 = LLVMBuildAdd(b->at, b->acc, sq, "acc1");
  LLVMValueRef i1 = LLVMBuildAdd(b->at, b->i, number(b, 1), "i1");
  LLVMBasicBlockRef last = LLVMGetInsertBlock(b->at), done = LLVMAppendBasicBlockInContext(b->context, f, "done");
  LLVMBuildCondBr(b->at, LLVMBuildICmp(b->at, LLVMIntULT, i1, b->n, "c"), loop, done);
  LLVMBasicBlockRef from[] = {entry, last};
  LLVMValueRef zero = number(b, 0), of_i[] = {zero, i1}, of_acc[] = {zero, acc1};
  LLVMAddIncoming(b->i, of_i, from, 2);
  LLVMAddIncoming(b->acc, of_acc, from, 2);
  LLVMPositionBuilderAtEnd(b->at, done);
  LLVMBuildRet(b->at, acc1);
}

// The back end.

// (2) IR: passes run first, and then the module is written, as the code generator will see it.
static LLVMErrorRef optimize_and_dump(void *unused, LLVMModuleRef m) {
  (void)unused;
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  LLVMErrorRef e = LLVMRunPasses(m, "rewrite-statepoints-for-gc", NULL, options);
  LLVMDisposePassBuilderOptions(options);
  if (e) return e;
  char file[256], *message = NULL;
  size_t length;
  snprintf(file, sizeof file, "%s.ll", LLVMGetModuleIdentifier(m, &length));
  if (LLVMPrintModuleToFile(m, file, &message)) return LLVMCreateStringError(message);
  return LLVMErrorSuccess;
}

static LLVMErrorRef transform(void *unused, LLVMOrcThreadSafeModuleRef *m, LLVMOrcMaterializationResponsibilityRef r) {
  (void)r;
  return LLVMOrcThreadSafeModuleWithModuleDo(*m, optimize_and_dump, unused);
}

#if LLVM_VERSION_MAJOR < 19
// (3) Registration, with LLVM 14. LLJIT does not register objects by default.
static LLVMOrcObjectLayerRef registering_layer(void *unused, LLVMOrcExecutionSessionRef session, const char *triple) {
  (void)unused, (void)triple;
  LLVMOrcObjectLayerRef layer = LLVMOrcCreateRTDyldObjectLinkingLayerWithSectionMemoryManager(session);
  LLVMOrcRTDyldObjectLinkingLayerRegisterJITEventListener(layer, LLVMCreateGDBRegistrationListener());
  return layer;
}
#endif

static void provide(LLVMOrcLLJITRef jit, const char *name, void *function) {
  LLVMOrcCSymbolMapPair symbol = {LLVMOrcLLJITMangleAndIntern(jit, name), {(uint64_t)function, {LLVMJITSymbolGenericFlagsExported | LLVMJITSymbolGenericFlagsCallable, 0}}};
  check(LLVMOrcJITDylibDefine(LLVMOrcLLJITGetMainJITDylib(jit), LLVMOrcAbsoluteSymbols(&symbol, 1)));
}

int main(int argc, char **argv) {
  enum kind kind = STACKMAP;
  while (argc > 1 && kind != NONE && strcmp(argv[1], kinds[kind])) kind++;
  if (argc < 2 || argc > 3 || kind == NONE || (argc == 3 && strcmp(argv[2], "run"))) {
    fprintf(stderr, "usage: host-c stackmap|patchpoint|statepoint|deoptimize [run]\n");
    return 64;
  }
  if (kind > PATCHPOINT && LLVM_VERSION_MAJOR < 18) {
    fprintf(stderr, "host-c: the C API of LLVM %d has no operand bundles, which a %s needs\n", LLVM_VERSION_MAJOR, kinds[kind]);
    return 1;
  }
  stops = argc < 3;
  LLVMInitializeNativeTarget();
  LLVMInitializeNativeAsmPrinter();

  LLVMOrcLLJITBuilderRef options = LLVMOrcCreateLLJITBuilder();
#if LLVM_VERSION_MAJOR < 19
  LLVMOrcLLJITBuilderSetObjectLinkingLayerCreator(options, registering_layer, NULL);
#endif
  LLVMOrcLLJITRef jit;
  check(LLVMOrcCreateLLJIT(&jit, options));
#if LLVM_VERSION_MAJOR >= 19
  check(LLVMOrcLLJITEnableDebugSupport(jit)); // (3) registration, with LLVM 19
#endif
  LLVMOrcIRTransformLayerSetTransform(LLVMOrcLLJITGetIRTransformLayer(jit), transform, NULL);
  provide(jit, "square", square);
  provide(jit, "tick", tick);
  provide(jit, "__llvm_deoptimize", __llvm_deoptimize);

  LLVMOrcThreadSafeContextRef context = LLVMOrcCreateNewThreadSafeContext();
  struct builder b = {.context = LLVMOrcThreadSafeContextGetContext(context)};
  LLVMContextSetDiscardValueNames(b.context, 0); // (1) the default, but not in a context of clang
  b.module = LLVMModuleCreateWithNameInContext(kinds[kind], b.context);
  LLVMSetTarget(b.module, LLVMOrcLLJITGetTripleString(jit));
  LLVMSetDataLayout(b.module, LLVMOrcLLJITGetDataLayoutStr(jit));
  b.at = LLVMCreateBuilderInContext(b.context);
  b.i32 = LLVMInt32TypeInContext(b.context);
  b.i64 = LLVMInt64TypeInContext(b.context);
  b.pointer = LLVMPointerType(LLVMInt8TypeInContext(b.context), 0);
  b.nothing = LLVMVoidTypeInContext(b.context);
  build(&b, "work", kind);
  build(&b, "sum", NONE); // the function in which the interpreter and the runtime resume
  LLVMDisposeBuilder(b.at);
  check(LLVMOrcLLJITAddLLVMIRModule(jit, LLVMOrcLLJITGetMainJITDylib(jit), LLVMOrcCreateNewThreadSafeModule(b.module, context)));

  LLVMOrcExecutorAddress work, sum;
  check(LLVMOrcLLJITLookup(jit, &work, "work"));
  check(LLVMOrcLLJITLookup(jit, &sum, "sum"));
  baseline = (int64_t(*)(int64_t))sum;
  printf("%ld\n", (long)call_optimized((int64_t(*)(int64_t))work, N));
  check(LLVMOrcDisposeLLJIT(jit));
  return 0;
}
