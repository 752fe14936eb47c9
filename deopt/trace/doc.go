// Package trace tells of each exit of a running process as it happens: the frame that is left, with its values, whatever the process loads,
// registers and unloads meanwhile.
//
// [Run] traces until the process or the trace ends, [RunTo] stops at one exit, [Plan] says what would be written into a process, and a
// [Watcher] is for whoever does more at an exit than to tell of it. The breakpoints are those of a [ptrace.Session], which takes each out
// again. The process is trusted in nothing: a breakpoint is set only where an instruction of a function starts that a map is about.
package trace
