package holder

import (
	"context"
	"errors"

	"example.com/reframe/internal/machine"
)

// Control runs and stops the process of a State. Either all of its threads run, or all are stopped. The process of a new State is stopped.
//
// An error that wraps [ErrLost] means that the debugger no longer answers; all later calls return the same error. An error that wraps [ErrLacks]
// means that the debugger does not support the operation.
type Control interface {
	// State reads the stopped process again. The result has the same Memory object, and no Control or Close.
	State() (*State, error)
	// Threads reads the threads of the stopped process with their registers.
	Threads() ([]machine.Thread, error)
	// Thread reads one thread.
	Thread(id int) (machine.Thread, error)
	// Insert sets a breakpoint in the stopped process, and Remove removes one. Memory is read without the breakpoints.
	Insert(machine.Addr) error
	Remove(machine.Addr) error
	// Step executes one instruction of a thread, while the other threads are stopped.
	Step(ctx context.Context, thread int) (Stop, error)
	// Resume resumes the process. [Control.Wait] reports when it stops.
	Resume() error
	// Wait waits until the process stops. It delivers signals to the process without returning. If ctx is done, the error is its cause, and the
	// process continues to run.
	Wait(ctx context.Context) (Stop, error)
	// Interrupt stops the running process. If another stop came first, it may return that stop.
	Interrupt() (Stop, error)
	// Reverses reports whether the debugger runs the process backwards, as far as its recording goes. Otherwise StepBack and RunBack return [ErrNoReverse].
	Reverses() bool
	// StepBack goes back by one instruction of a thread. The stop is Stepped or Began.
	StepBack(ctx context.Context, thread int) (Stop, error)
	// RunBack runs the process backwards until a thread is at a breakpoint, before the last instruction that wrote into the range written, or at the
	// start of the recording. An empty range is not watched. The error wraps [ErrLacks] if the debugger cannot watch memory. If ctx is done, the
	// error is its cause, and the process is stopped at some earlier moment.
	RunBack(ctx context.Context, written machine.Range) (Stop, error)
	// Detach removes the breakpoints, resumes the process without the debugger, and ends the connection.
	Detach() error
	// Kill ends the process and the connection.
	Kill() error
	// Disconnect ends the connection, and leaves the process to the debugger.
	Disconnect() error
}

// ErrLacks is wrapped in the errors of operations that a debugger does not support.
var ErrLacks = errors.New("the debugger does not support it")

// ErrNoReverse is returned by operations that run a process backwards, if its debugger cannot.
var ErrNoReverse = errors.New("the stub does not support reverse execution; rr and QEMU with icount replay do")

// Stop describes where a process has stopped.
type Stop struct {
	Kind    StopKind
	Thread  int          // the thread that caused the stop
	PC      machine.Addr // address of the breakpoint or, after running backwards, of the thread's instruction
	Code    int          // the exit status
	Signal  int          // the Linux number of the signal that ended the process
	Changed bool         // for Written: the instruction changed the memory; otherwise it wrote what was there
}

// StopKind is the kind of a stop.
type StopKind int

// The kinds of stops.
const (
	Hit         StopKind = iota // a thread is at a breakpoint, before its instruction
	Stepped                     // a thread has executed one instruction
	Interrupted                 // [Control.Interrupt] has stopped the process
	Exec                        // the process has executed another program, in which no breakpoints are set
	Exited                      // the process has ended by itself
	Killed                      // a signal has ended the process
	Written                     // a thread is before an instruction that writes into watched memory; only when running backwards
	Began                       // the recording has no earlier moment; only when running backwards
)
