// Package patched finds frames that stand in code over which a runtime has written a call, or a jump to code that calls: so compiled code
// is invalidated (LLVM, "Stack maps and patch points"). The code of a record as it was is held against what the target has there now.
//
// Its main type is [Finder], which finds the [Code] that a frame returns to. It reads code of x86-64 and arm64.
//
// # Security
//
// Code and records are hostile: searches are bounded, and where two records may be meant, none is.
package patched
