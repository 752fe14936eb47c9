// Package verify holds native code against the stack map that it came with: at each exit the interpreter runs from the rebuilt frame to the
// return of its function, native code does the same, and what both returned and stored is compared.
//
// Its main type is [Verified], what came of one exit; [Run] verifies a process.
//
// # Security
//
// The process is trusted in nothing. What both sides may run, and how much of its memory is copied before native code runs, is bounded by
// the [Options]; what cannot be held against each other is not comparable, with the reason.
package verify
