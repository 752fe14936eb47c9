// Package session is a debugging session: a process goes from exit to exit, or a core stands at one, and from the rebuilt frames the interpreter goes on by
// instructions, forwards and backwards, while the target stands as it is.
//
// Its main type is [Session], which has no face of its own: a prompt and an editor show what it says. A [Run] is the interpreter's run from an exit, a
// [VMRun] that of a virtual machine's own interpreter.
//
// # Security
//
// The target is hostile, and read through package deopt. What the interpreter stores stays in its own copy. The process is controlled by
// package ptrace, which puts back what was written into it; only [Session.Commit] changes it.
package session
