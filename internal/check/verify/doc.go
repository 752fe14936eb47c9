// Package verify compares native code with the stack map that it came with: at each exit the interpreter runs from the rebuilt frame to the return of
// its function, native code does the same, and their results and stores are compared.
//
// Its main type is [Verified], the outcome of one exit; [Run] verifies a process.
//
// A verifier (verify.go) receives exits from package trace and runs native code. For each exit it makes a prediction (prediction.go), whose phases are
// types of their own, each in the file of its name.
//
// # Security
//
// The process is not trusted. The [Options] bound what both sides may run, and how much of its memory is copied before native code runs; what cannot
// be compared is reported as not comparable, with the reason.
package verify
