// Package patched finds the frames of functions whose code a runtime has overwritten to invalidate it, with a call, a jump to code that calls, or a
// trap (LLVM, "Stack maps and patch points"). It compares the code of a record in the target with the compiled code.
//
// Its main type is [Finder], which finds the [Code] that a frame returns to. It supports x86-64 and arm64.
//
// # Security
//
// Code and records are hostile: searches are bounded, and if two records are possible, neither is used.
package patched
