// Package abi describes calling conventions: the registers of results and arguments, the preserved registers, the stack arguments and the side that removes
// them, symbol names, and the numbers of conventions.
//
// Its main types are [ResultRegisters], with which [CompareResult] compares an interpreter's result with registers, and [Convention], the differences of a
// convention of LLVM from C's. Sources are the System V ABI's AMD64 supplement, AAPCS64, and LLVM's lists of callee-saved registers (doc/dev/facts.md).
//
// # Security
//
// The package reads no memory. IR comes from the user and registers from the target; both are only compared, and no length is taken from them.
package abi
