// Package tracer is the process that does the tracing: it holds the breakpoints of a process
// that is being watched, and puts every byte back when whoever asked for them is gone.
//
// Its main types are [Conn], the end of the one who asks, and server, the tracer itself: the
// same binary, started again by [Start] under the name [Name]. They talk over a socket. That the tracer is
// another process is the point of it. A tracer that is killed has no last moment, and the
// kernel resumes what it traced at once, with the breakpoints in place: whatever tidied up
// behind it would come too late. So the tracer is a small process that nobody has a reason to kill, and the
// large one, which reads modules, runs the interpreter and prints, traces nothing.
//
// The tracer has one loop on one thread, as ptrace(2) wants: it takes what wait(2) reports and what
// it is asked, one thing at a time. All threads of the target either run or are stopped;
// where one steps over a breakpoint, the others are stopped, so that none slips past it.
//
// # Security
//
// The two ends trust each other. What the target does is not trusted: it may fork, exec,
// end, unmap its code or write over a breakpoint at any moment, and nothing waits for it without a
// bound but the loop itself. A byte is put back only where the breakpoint's own still lies.
package tracer

// Name is what the tracer is called in lists of processes. It does not have the name of the
// command in it, so that to kill all that do by name does not end the tracer. Messages call it
// the guard, as that name does.
const Name = "rf-guard"
