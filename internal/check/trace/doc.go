// Package trace reports each exit of a running process as it happens: the frame that is left, with its values, whatever code the process loads,
// registers and unloads meanwhile.
//
// Its main type is [Exited], one exit. [Run] traces until the process or the trace ends, [RunTo] stops at one exit, [Plan] lists what would be
// written into a process, and a [Watcher] is for callers that do more at an exit than report it. A [ptrace.Session] sets and removes the
// breakpoints.
//
// # Security
//
// The process is not trusted: a breakpoint is set only where an instruction starts in a function that a map describes, registered objects may be
// gone or broken at the next stop, and the number of functions, stacks and warnings that are kept is bounded.
package trace
