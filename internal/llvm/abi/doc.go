// Package abi describes calling conventions: where a function returns its value, which registers it preserves, how much of its caller's stack may
// hold its arguments and who removes them, how its symbol is spelled, and the number of each convention.
//
// Its main types are [ResultRegisters], by which [CompareResult] holds a value of the interpreter against registers, and [Convention], what
// a convention of LLVM keeps otherwise than C's does. Sources are the System V ABI's AMD64 supplement, AAPCS64, and LLVM's lists of
// callee-saved registers (doc/facts.md).
//
// # Security
//
// It reads no memory. IR comes from the user, registers from the target: whatever they hold is compared, and no length is taken from them.
package abi
