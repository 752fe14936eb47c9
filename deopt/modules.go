package deopt

import "example.com/reframe/internal/llvm/ir"

// ReadModules reads the modules of LLVM IR that names lead to: files, patterns, and folders with the dumps of a JIT compiler. Notes say what was found there
// and left out. Bitcode needs llvm-dis.
func ReadModules(names []string) (modules []*ir.Module, notes []string, err error) {
	return ir.ReadNamed(names)
}
