// A small JIT on ORC's LLJIT (C++, LLVM 19), with one function for each kind of site that leaves a stack map record:
//
//   host-cpp stackmap|patchpoint|statepoint|deoptimize [run]
//
// does the same as host.c, but writes statepoints itself instead of running a pass. What a host does for reframe is marked with
// numbers; doc/user/host.md explains them in that order.
#include "runtime.h"

#include <llvm/ExecutionEngine/Orc/Debugging/DebuggerSupport.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Scalar/RewriteStatepointsForGC.h>

#include <cstdio>

using namespace llvm;
using namespace llvm::orc;

static ExitOnError check("host-cpp: ");

// The front end.

struct Function_builder {
  Module &module;
  IRBuilder<> at{module.getContext()};
  Type *i64 = at.getInt64Ty();
  FunctionType *unary = FunctionType::get(i64, {i64}, false);
  Value *n = nullptr, *i = nullptr, *acc = nullptr;

  // A stackmap is a point in the code: it calls nothing. Here it is right after a call, so a frame that waits in the call is at
  // the stackmap.
  Value *stackmap() {
    at.CreateCall(module.getOrInsertFunction("tick", FunctionType::get(at.getVoidTy(), {i64}, false)), {i});
    at.CreateCall(Intrinsic::getDeclaration(&module, Intrinsic::experimental_stackmap),
                  {at.getInt64(1) /* id */, at.getInt32(0) /* nops */, i, acc, n});
    return at.CreateMul(i, i, "sq");
  }

  // A patchpoint is itself a call: 13 bytes here, in a region of 16 that the runtime may overwrite.
  Value *patchpoint() {
    return at.CreateCall(Intrinsic::getDeclaration(&module, Intrinsic::experimental_patchpoint, {i64}),
                         {at.getInt64(2) /* id */, at.getInt32(16) /* bytes */, module.getOrInsertFunction("square", unary).getCallee(),
                          at.getInt32(1) /* arguments of the call */, i, i, acc, n},
                         "sq");
  }

  // A statepoint with its own id, around a call. The deopt values are those of the interpreter's frame.
  Value *statepoint() {
    CallInst *token = at.CreateGCStatepointCall(3 /* id */, 0 /* bytes */, module.getOrInsertFunction("square", unary), {i},
                                                ArrayRef<Value *>{i, acc, n}, {} /* gc pointers */, "token");
    return at.CreateGCResult(token, i64, "sq");
  }

  // A guess that the sum stays below a limit. If it is wrong, the frame is left for good; the layout selects the place where
  // the interpreter resumes by the first deopt value.
  void guard(Function *f) {
    BasicBlock *left = BasicBlock::Create(module.getContext(), "exit", f), *on = BasicBlock::Create(module.getContext(), "on", f);
    at.CreateCondBr(at.CreateICmpULT(acc, at.getInt64(LIMIT), "guess"), on, left);
    at.SetInsertPoint(left);
    Value *reason = at.getInt64(3);
    OperandBundleDef bundle("deopt", std::vector<Value *>{reason, i, acc, n});
    at.CreateRet(at.CreateCall(Intrinsic::getDeclaration(&module, Intrinsic::experimental_deoptimize, {i64}), {reason}, {bundle}, "d"));
    at.SetInsertPoint(on);
  }

  // Builds int64_t NAME(int64_t n), a loop that sums squares, with a site of one kind in it.
  void build(StringRef name, StringRef kind) {
    Function *f = Function::Create(unary, Function::ExternalLinkage, name, module);
    BasicBlock *entry = BasicBlock::Create(module.getContext(), "entry", f), *loop = BasicBlock::Create(module.getContext(), "loop", f);
    n = f->getArg(0);
    n->setName("n"); // (1) names: reframe shows the slots under these names
    at.SetInsertPoint(entry);
    at.CreateBr(loop);
    at.SetInsertPoint(loop);
    PHINode *phi_i = at.CreatePHI(i64, 2, "i"), *phi_acc = at.CreatePHI(i64, 2, "acc");
    i = phi_i, acc = phi_acc;
    if (kind == "statepoint" || kind == "deoptimize") f->setGC("statepoint-example");
    if (kind == "deoptimize") guard(f);
    Value *sq = kind == "stackmap" ? stackmap() : kind == "patchpoint" ? patchpoint() : kind == "statepoint" ? statepoint() : at.CreateMul(i, i, "sq");
    Value *acc1 = at.CreateAdd(acc, sq, "acc1"), *i1 = at.CreateAdd(i, at.getInt64(1), "i1");
    BasicBlock *last = at.GetInsertBlock(), *done = BasicBlock::Create(module.getContext(), "done", f);
    at.CreateCondBr(at.CreateICmpULT(i1, n, "c"), loop, done);
    phi_i->addIncoming(at.getInt64(0), entry), phi_i->addIncoming(i1, last);
    phi_acc->addIncoming(at.getInt64(0), entry), phi_acc->addIncoming(acc1, last);
    at.SetInsertPoint(done);
    at.CreateRet(acc1);
  }
};

// The back end.

// (2) IR: passes run first, and then the module is written, as the code generator will see it. The pass turns the deoptimize into a
// statepoint.
static Expected<ThreadSafeModule> optimize_and_dump(ThreadSafeModule whole, MaterializationResponsibility &) {
  Error failed = whole.withModuleDo([](Module &module) -> Error {
    LoopAnalysisManager loops;
    FunctionAnalysisManager functions;
    CGSCCAnalysisManager components;
    ModuleAnalysisManager modules;
    PassBuilder builder;
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);
    RewriteStatepointsForGC().run(module, modules);
    std::error_code code;
    raw_fd_ostream out(module.getModuleIdentifier() + ".ll", code);
    if (code) return errorCodeToError(code);
    module.print(out, nullptr);
    return Error::success();
  });
  if (failed) return failed;
  return whole;
}

int main(int argc, char **argv) {
  StringRef kind = argc > 1 ? argv[1] : "";
  bool known = kind == "stackmap" || kind == "patchpoint" || kind == "statepoint" || kind == "deoptimize";
  if (!known || argc > 3 || (argc == 3 && StringRef(argv[2]) != "run")) {
    errs() << "usage: host-cpp stackmap|patchpoint|statepoint|deoptimize [run]\n";
    return 64;
  }
  stops = argc < 3;
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();

  auto jit = check(LLJITBuilder().create());
  check(enableDebuggerSupport(*jit)); // (3) registration
  jit->getIRTransformLayer().setTransform(optimize_and_dump);
  auto callable = JITSymbolFlags::Exported | JITSymbolFlags::Callable;
  auto provided = [&](auto *f) { return ExecutorSymbolDef(ExecutorAddr::fromPtr(f), callable); };
  check(jit->getMainJITDylib().define(absoluteSymbols({
      {jit->mangleAndIntern("square"), provided(square)},
      {jit->mangleAndIntern("tick"), provided(tick)},
      {jit->mangleAndIntern("__llvm_deoptimize"), provided(__llvm_deoptimize)},
  })));

  auto context = std::make_unique<LLVMContext>();
  context->setDiscardValueNames(false); // (1) the default, but not in a context of clang
  auto module = std::make_unique<Module>(kind, *context);
  module->setTargetTriple(jit->getTargetTriple().str());
  module->setDataLayout(jit->getDataLayout());
  Function_builder builder{*module};
  builder.build("work", kind);
  builder.build("sum", ""); // the function in which the interpreter and the runtime resume
  check(jit->addIRModule(ThreadSafeModule(std::move(module), std::move(context))));

  auto work = check(jit->lookup("work"));
  baseline = check(jit->lookup("sum")).toPtr<int64_t(int64_t)>();
  std::printf("%ld\n", static_cast<long>(call_optimized(work.toPtr<int64_t(int64_t)>(), N)));
}
