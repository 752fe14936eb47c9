// Package fidelity holds the interpreter, the frames and the decoders against programs that others wrote and tools that others trust:
// csmith, LLVM's own files, real programs of Debian's. All of it is tests.
package fidelity
