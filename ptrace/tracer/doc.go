// Package tracer implements the process that traces a target. It sets breakpoints, and restores the original code when its client has ended.
//
// Its main types are [Conn], the client's end, and server, the tracer itself. The tracer is the same binary, started again by [Start] under the name
// [Name]. The two communicate over a socket. The tracer is a separate process because a killed tracer cannot clean up: the kernel immediately resumes
// the traced process with the breakpoints in place, so any later cleanup is too late. Therefore the tracer is a small process that users have no
// reason to kill. The large process, which reads modules, runs the interpreter and prints, does not trace.
//
// A third process, the watchdog, traces the tracer: if the tracer is killed, the kernel holds it until the watchdog has restored the target's code.
//
// The tracer has one loop on one thread, as ptrace(2) requires. It handles the reports of wait(2) and the client's requests, one at a time. Either
// all threads of the target run, or all are stopped. While one thread steps over a breakpoint, the others are stopped, so that none passes the
// breakpoint without a hit.
//
// # Security
//
// The two ends trust each other. The target is not trusted: it may fork, exec, end, unmap its code or overwrite a breakpoint at any moment. Only the
// loop itself waits for the target without a time limit. The tracer restores a byte only if its breakpoint instruction is still there.
package tracer

// Name is the name of the tracer in lists of processes. It does not contain the name of the command, so that killing the command by name does not end
// the tracer. Messages call the tracer the guard, after that name.
const Name = "rf-guard"
