// LLVM: compiles IR text to code that describes itself to debuggers. The numbers (1) to (4) mark what a JIT does for that.
#include "state.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/OrcEE.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <llvm/Config/llvm-config.h>
#if LLVM_VERSION_MAJOR >= 19
#include <llvm-c/LLJITUtils.h> // LLVMOrcLLJITEnableDebugSupport
#else
#include <llvm-c/ExecutionEngine.h> // LLVMCreateGDBRegistrationListener
#endif
#if LLVM_VERSION_MAJOR < 15
#define LLVMOrcCSymbolMapPair LLVMJITCSymbolMapPair
#endif
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" void __llvm_deoptimize();

namespace tinyvm {

// rewrite-statepoints-for-gc of LLVM 14 crashes on pointers without types.
const char *const ref_type = LLVM_VERSION_MAJOR < 15 ? "i64 addrspace(1)*" : "ptr addrspace(1)";
const char *const ptr_type = LLVM_VERSION_MAJOR < 15 ? "i64*" : "ptr";
const std::string byte_type = LLVM_VERSION_MAJOR < 15 ? "i8*" : "ptr";

namespace {

LLVMOrcLLJITRef jit;
std::string object_file; // the latest output of the code generator

void check(LLVMErrorRef e) {
  if (!e) return;
  fprintf(stderr, "tinyvm: %s\n", LLVMGetErrorMessage(e));
  exit(1);
}

void provide(const char *name, void *address, uint8_t flags) {
  LLVMOrcCSymbolMapPair symbol = {LLVMOrcLLJITMangleAndIntern(jit, name), {reinterpret_cast<uint64_t>(address), {flags, 0}}};
  check(LLVMOrcJITDylibDefine(LLVMOrcLLJITGetMainJITDylib(jit), LLVMOrcAbsoluteSymbols(&symbol, 1)));
}

LLVMErrorRef keep_object(void *, LLVMMemoryBufferRef *object) {
  object_file.assign(LLVMGetBufferStart(*object), LLVMGetBufferSize(*object));
  return LLVMErrorSuccess;
}

#if LLVM_VERSION_MAJOR < 19
// (3) Registration with debuggers, with LLVM 14.
LLVMOrcObjectLayerRef registering_layer(void *, LLVMOrcExecutionSessionRef session, const char *) {
  LLVMOrcObjectLayerRef layer = LLVMOrcCreateRTDyldObjectLinkingLayerWithSectionMemoryManager(session);
  LLVMOrcRTDyldObjectLinkingLayerRegisterJITEventListener(layer, LLVMCreateGDBRegistrationListener());
  return layer;
}
#endif

// (4) Self-description: text in a section of the object, which is registered with the debugger interface. No code refers to it, so it
// takes no memory in the linked code.
void describe(LLVMContextRef context, LLVMModuleRef module, const char *name, const char *section, const char *text, size_t length) {
  LLVMValueRef string = LLVMConstStringInContext(context, text, length, 1);
  LLVMValueRef g = LLVMAddGlobal(module, LLVMTypeOf(string), name);
  LLVMSetInitializer(g, string);
  LLVMSetGlobalConstant(g, 1);
  LLVMSetLinkage(g, LLVMInternalLinkage); // each module has one of that name
  LLVMSetSection(g, section);
}

} // namespace

void start_jit() {
  LLVMInitializeNativeTarget();
  LLVMInitializeNativeAsmPrinter();
  LLVMOrcLLJITBuilderRef builder = LLVMOrcCreateLLJITBuilder();
#if LLVM_VERSION_MAJOR < 19
  LLVMOrcLLJITBuilderSetObjectLinkingLayerCreator(builder, registering_layer, nullptr);
#endif
  check(LLVMOrcCreateLLJIT(&jit, builder));
#if LLVM_VERSION_MAJOR >= 19
  check(LLVMOrcLLJITEnableDebugSupport(jit)); // (3) with LLVM 19
#endif
  LLVMOrcObjectTransformLayerSetTransform(LLVMOrcLLJITGetObjTransformLayer(jit), keep_object, nullptr);
  const uint8_t data = LLVMJITSymbolGenericFlagsExported, code = data | LLVMJITSymbolGenericFlagsCallable;
  provide("tinyvm_cards", tinyvm_cards, data);
  provide("tinyvm_fuel", &tinyvm_fuel, data);
  provide("tinyvm_stopped", &tinyvm_stopped, data);
  const std::pair<const char *, void *> functions[] = {
      {"tinyvm_call", reinterpret_cast<void *>(tinyvm_call)},         {"tinyvm_arithmetic", reinterpret_cast<void *>(tinyvm_arithmetic)},
      {"tinyvm_truth", reinterpret_cast<void *>(tinyvm_truth)},       {"tinyvm_getfield", reinterpret_cast<void *>(tinyvm_getfield)},
      {"tinyvm_putfield", reinterpret_cast<void *>(tinyvm_putfield)}, {"tinyvm_new", reinterpret_cast<void *>(tinyvm_new)},
      {"tinyvm_print", reinterpret_cast<void *>(tinyvm_print)},       {"__llvm_deoptimize", reinterpret_cast<void *>(__llvm_deoptimize)},
  };
  for (auto &f : functions) provide(f.first, f.second, code);
}

bool compile(Method *m) {
  if (m->refused) return false;
  Translation t;
  if (!translate(m, t)) {
    m->refused = true;
    return false;
  }
  m->versions++;
  LLVMContextRef context;
#if LLVM_VERSION_MAJOR >= 21
  context = LLVMContextCreate();
  LLVMOrcThreadSafeContextRef safe = LLVMOrcCreateNewThreadSafeContextFromLLVMContext(context);
#else
  LLVMOrcThreadSafeContextRef safe = LLVMOrcCreateNewThreadSafeContext();
  context = LLVMOrcThreadSafeContextGetContext(safe);
#endif
  LLVMContextSetDiscardValueNames(context, 0); // (1) names: reframe shows the slots under these names
  LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(t.text.data(), t.text.size(), t.symbol.c_str());
  LLVMModuleRef module;
  char *message = nullptr;
  if (LLVMParseIRInContext(context, buffer, &module, &message) || LLVMVerifyModule(module, LLVMReturnStatusAction, &message)) {
    fprintf(stderr, "tinyvm: the IR of %s: %s\n%s", m->name, message, getenv("TINYVM_DEBUG") ? t.text.c_str() : "");
    exit(1);
  }
  LLVMDisposeMessage(message);
  LLVMSetModuleIdentifier(module, t.symbol.data(), t.symbol.size());
  LLVMSetTarget(module, LLVMOrcLLJITGetTripleString(jit));
  LLVMSetDataLayout(module, LLVMOrcLLJITGetDataLayoutStr(jit));
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  check(LLVMRunPasses(module, tinyvm::options.opt ? "default<O2>,rewrite-statepoints-for-gc" : "rewrite-statepoints-for-gc", nullptr, options));
  LLVMDisposePassBuilderOptions(options);
  char *text = LLVMPrintModuleToString(module); // (2) the IR that the code generator sees
  if (tinyvm::options.dump) {
    std::string file = std::string(tinyvm::options.dump) + "/" + t.symbol + ".ll";
    if (FILE *f = fopen(file.c_str(), "w")) fputs(text, f), fclose(f);
    else perror(file.c_str()), exit(1);
  }
  describe(context, module, "__reframe_layout", ".reframe.layout", "simple", sizeof "simple");
  describe(context, module, "__reframe_ir", ".reframe.ir", text, strlen(text));
  LLVMDisposeMessage(text);
  check(LLVMOrcLLJITAddLLVMIRModule(jit, LLVMOrcLLJITGetMainJITDylib(jit), LLVMOrcCreateNewThreadSafeModule(module, safe)));
  LLVMOrcDisposeThreadSafeContext(safe);
  LLVMOrcExecutorAddress address;
  check(LLVMOrcLLJITLookup(jit, &address, t.symbol.c_str()));
  register_records(object_file.data(), object_file.size(), address);
  m->compiled = reinterpret_cast<Method::Code>(address);
  return true;
}

} // namespace tinyvm
