// Package verify holds native code against the stack map that it came with: at each exit the interpreter runs from the rebuilt frame to the
// return of its function, native code does the same, and what both returned and stored is compared.
//
// [Run] verifies a process, and tells of each exit as a [Verified]. What the process has in memory is copied before native code runs, within
// bounds ([Options]). The process is trusted in nothing: what cannot be held against each other is not comparable, with the reason.
package verify
