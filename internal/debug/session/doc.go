// Package session runs debugging sessions: a process runs from exit to exit, or a core is stopped at an exit. From the rebuilt frames the interpreter
// runs instructions, forwards and backwards, and the target does not change.
//
// Its main type is [Session], which has no user interface: packages prompt and dap show its state. A [Run] is the interpreter's run from an exit, a
// [VMRun] that of a virtual machine's own interpreter.
//
// # Security
//
// The target is hostile, and read through package deopt. The interpreter's stores stay in its own copy of memory. Package ptrace controls the
// process, and undoes its own writes; only [Session.Commit] changes the process.
package session
