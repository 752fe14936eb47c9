// Package fidelity compares the interpreter, the frames and the decoders with programs that others wrote and tools that others trust: csmith, LLVM's
// own files, real programs of Debian's. All of it is tests, and it has no main type: its main functions are those that hold a program's run against
// its native one. What is compiled and run there has the rights of the test.
package fidelity
