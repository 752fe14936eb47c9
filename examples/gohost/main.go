// A host in Go that compiles a function with LLVM 19 through cgo, and calls it:
//
//	gohost [run]
//
// work(1000) is the sum of the squares below 1000. The compiled code calls square, which is a Go function. Without `run` the program waits in square at
// i = 26, prints its pid, and ends after ten minutes. host.c has the same function with other kinds of sites.
package main

/*
#include <llvm-c/Core.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/LLJITUtils.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdlib.h>

extern long square(long);

// compile compiles the module and returns the address of work. It writes the module to a file as the code generator sees it, so that reframe can name
// the values in the stack map.
static LLVMErrorRef compile(const char *ir, size_t size, const char *dump, LLVMOrcExecutorAddress *work) {
	LLVMInitializeNativeTarget();
	LLVMInitializeNativeAsmPrinter();
	LLVMOrcLLJITRef jit;
	LLVMErrorRef e = LLVMOrcCreateLLJIT(&jit, NULL);
	if (e || (e = LLVMOrcLLJITEnableDebugSupport(jit))) // it registers the object, as for gdb
		return e;
	LLVMOrcCSymbolMapPair symbol = {LLVMOrcLLJITMangleAndIntern(jit, "square"), {(LLVMOrcExecutorAddress)square, {LLVMJITSymbolGenericFlagsExported | LLVMJITSymbolGenericFlagsCallable, 0}}};
	if ((e = LLVMOrcJITDylibDefine(LLVMOrcLLJITGetMainJITDylib(jit), LLVMOrcAbsoluteSymbols(&symbol, 1))))
		return e;

	LLVMOrcThreadSafeContextRef context = LLVMOrcCreateNewThreadSafeContext();
	LLVMModuleRef module;
	char *message = NULL;
	LLVMMemoryBufferRef text = LLVMCreateMemoryBufferWithMemoryRangeCopy(ir, size, "work");
	if (LLVMParseIRInContext(LLVMOrcThreadSafeContextGetContext(context), text, &module, &message))
		return LLVMCreateStringError(message);
	LLVMSetTarget(module, LLVMOrcLLJITGetTripleString(jit));
	LLVMSetDataLayout(module, LLVMOrcLLJITGetDataLayoutStr(jit));
	LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
	e = LLVMRunPasses(module, "rewrite-statepoints-for-gc", NULL, options);
	LLVMDisposePassBuilderOptions(options);
	if (e)
		return e;
	if (LLVMPrintModuleToFile(module, dump, &message))
		return LLVMCreateStringError(message);
	if ((e = LLVMOrcLLJITAddLLVMIRModule(jit, LLVMOrcLLJITGetMainJITDylib(jit), LLVMOrcCreateNewThreadSafeModule(module, context))))
		return e;
	return LLVMOrcLLJITLookup(jit, work, "work");
}

static long call(LLVMOrcExecutorAddress f, long n) { return ((long (*)(long))f)(n); }
*/
import "C"

import (
	"fmt"
	"os"
	"time"
	"unsafe"
)

// ir has a call with a deopt bundle: the values that an interpreter needs to continue after it.
const ir = `
declare i64 @square(i64)

define i64 @work(i64 %n) gc "statepoint-example" {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i1, %loop ]
  %acc = phi i64 [ 0, %entry ], [ %acc1, %loop ]
  %sq = call i64 @square(i64 %i) [ "deopt"(i64 %i, i64 %acc, i64 %n) ]
  %acc1 = add i64 %acc, %sq
  %i1 = add i64 %i, 1
  %c = icmp ult i64 %i1, %n
  br i1 %c, label %loop, label %done
done:
  ret i64 %acc1
}
`

//export square
func square(i C.long) C.long {
	if i == 26 && len(os.Args) == 1 {
		fmt.Println("pid", os.Getpid())
		time.Sleep(10 * time.Minute)
		os.Exit(0)
	}
	return i * i
}

func main() {
	text, dump := C.CString(ir), C.CString("work.ll")
	defer C.free(unsafe.Pointer(text))
	defer C.free(unsafe.Pointer(dump))
	var work C.LLVMOrcExecutorAddress
	if e := C.compile(text, C.size_t(len(ir)), dump, &work); e != nil {
		fmt.Fprintln(os.Stderr, "gohost:", C.GoString(C.LLVMGetErrorMessage(e)))
		os.Exit(1)
	}
	fmt.Println(C.call(work, 1000))
}
