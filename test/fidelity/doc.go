// Package fidelity compares the interpreter, the frames and the decoders with programs that others wrote and tools that others trust: csmith, LLVM's
// own files, real programs of Debian's. The package contains only tests. It has no main type; its main functions compare a program's interpreted run
// with its native run. The programs are compiled and run with the rights of the test.
package fidelity
