// Package verify compares native code with its stack map: at each exit the interpreter runs from the rebuilt frame to the return of its function,
// native code also runs to that return, and their results and stores are compared.
//
// Its main type is [Verified], the outcome of one exit; [Run] verifies a process.
//
// A verifier (verify.go) receives exits from package trace and runs native code. For each exit it makes a prediction (prediction.go), whose phases
// are separate types, each in the file with its name.
//
// # Security
//
// The process is not trusted. The [Options] bound the instructions of both sides, and the memory that is copied before native code runs. An exit that
// cannot be compared is reported with the reason.
package verify
