// Package trace reports each exit of a running process as it happens: the frame that is left, with its values, whatever the process loads,
// registers and unloads meanwhile.
//
// Its main type is [Exited], one exit. [Run] traces until the process or the trace ends, [RunTo] stops at one exit, [Plan] says what would
// be written into a process, and a [Watcher] is for whoever has more to do at an exit than to report it. Breakpoints are set and taken out
// by a [ptrace.Session].
//
// # Security
//
// The process is trusted in nothing: a breakpoint is set only where an instruction of a function starts that a map is about, what is
// registered may be gone or broken at the next stop, and how many functions, stacks and warnings are kept has bounds.
package trace
