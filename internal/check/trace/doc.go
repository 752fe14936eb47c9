// Package trace reports each exit of a running process as it happens: the frame that is left, with its values. It follows the code that the process
// loads, registers and unloads.
//
// Its main type is [Exited], one exit. [Run] traces until the process or the trace ends, [RunTo] stops at one exit, [Plan] lists the breakpoints that
// a trace would set in a process, and [Watcher] is for callers that do not only report exits. A [ptrace.Session] sets and removes the breakpoints.
//
// # Security
//
// The process is not trusted. A breakpoint is set only where an instruction starts in a function that a map describes. Registered objects may be gone
// or broken at the next stop. The numbers of functions, stacks and warnings that are kept are bounded.
package trace
