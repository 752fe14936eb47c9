// Package patched finds the frames of functions whose code a runtime has overwritten, with a call, a jump to code that calls, or a trap, to
// invalidate it (LLVM, "Stack maps and patch points"). It compares the code of a record in the target with the code that was compiled.
//
// Its main type is [Finder], which finds the [Code] that a frame returns to. It reads code of x86-64 and arm64.
//
// # Security
//
// Code and records are hostile: searches are bounded, and where two records may be meant, none is.
package patched
