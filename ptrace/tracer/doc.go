// Package tracer is the process that traces a target: it sets the breakpoints, and restores every byte when its client has ended.
//
// Its main types are [Conn], the client's end, and server, the tracer itself: the same binary, started again by [Start] under the name [Name]. They
// communicate over a socket. The tracer is a separate process for a reason: a killed tracer cannot clean up, and the kernel resumes the traced
// process at once, with the breakpoints in place, so any later cleanup would be too late. So the tracer is a small process that users have no
// reason to kill, and the large one, which reads modules, runs the interpreter and prints, traces nothing.
//
// A third process, the watchdog, traces the tracer: if the tracer is killed, the kernel holds it until the watchdog has restored the target's code.
//
// The tracer has one loop on one thread, as ptrace(2) requires: it handles the reports of wait(2) and the client's requests, one at a time. All
// threads of the target either run or are stopped; while one steps over a breakpoint, the others are stopped, so that none runs past it.
//
// # Security
//
// The two ends trust each other. The target is not trusted: it may fork, exec, end, unmap its code or overwrite a breakpoint at any moment, and
// only the loop itself waits for it without a bound. A byte is restored only if the breakpoint's own is still there.
package tracer

// Name is the name of the tracer in lists of processes. It does not contain the name of the command, so that killing the command by name does not
// end the tracer. Messages call it the guard, after that name.
const Name = "rf-guard"
