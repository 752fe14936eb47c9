// Package session runs debugging sessions: a process runs from exit to exit, or a core is stopped at an exit. From the rebuilt frames the interpreter
// runs instructions, forwards and backwards, while the target does not change.
//
// Its main type is [Session], which has no user interface: packages prompt and dap show its state. A [Run] is the interpreter's run from an exit, a
// [VMRun] that of a virtual machine's own interpreter.
//
// # Security
//
// The target is hostile, and read through package deopt. What the interpreter stores stays in its own copy. Package ptrace controls the process and
// restores what it writes into it; only [Session.Commit] changes it.
package session
