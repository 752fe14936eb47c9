package deopt

import "example.com/reframe/internal/llvm/ir"

// ReadModules reads modules of LLVM IR from files, patterns, and folders with the dumps of a JIT compiler. notes lists what was found in the
// folders and skipped. Bitcode needs llvm-dis.
func ReadModules(names []string) (modules []*ir.Module, notes []string, err error) {
	return ir.ReadNamed(names)
}
