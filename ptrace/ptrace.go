// Package ptrace opens targets: a running process, which it stops only to copy its state; a traced process, which runs from one breakpoint to the
// next; or a core.
//
// Its main type is [Target]. It holds the threads of a process with their registers, the memory that was copied while they were stopped, the mapped
// files, and the objects that a JIT registered with the GDB JIT interface.
//
// A [Session] controls a process: it runs the process to breakpoints, returns a Target at each stop, runs one thread alone, and changes memory and
// registers on request. Another process, the tracer (package ptrace/tracer), does the tracing.
//
// A capture has three parts. Before the stop it reads the data that rarely changes: mappings, the headers of files, the list of registered objects,
// and which pages of code differ from the file. During the stop it copies registers, stacks and code that is not in a file. The duration of the stop
// does not depend on the number of registered objects. After the stop it compares the earlier data with the current data; if that has changed, the
// capture starts again.
//
// The same code reads a core, from the segments of the core file. Memory that the core omits comes from the files that were mapped. Such a file is
// not used for memory that the process may have overwritten, or if the file is known to be another one now.
//
// # Security
//
// All data from the process is hostile. Sizes are checked against limits before any allocation, walks over lists are bounded, and a process that
// dies, forks or unmaps memory during a read gives an error.
//
// A core is hostile, too, and may name any file. The package opens only regular files, for reading, and ignores them unless they are ELF images. It
// reads the core's memory on demand, and checks lists in it against its size.
//
// A capture writes nothing into the process. It seizes the process (PTRACE_SEIZE), so the kernel resumes the process if the reader dies for any
// reason.
//
// A session writes breakpoints, and the changes of [Session.Commit]. It removes the breakpoints when it ends. If this process is killed, the tracer
// removes them; if the tracer is killed too, its watchdog removes them (package ptrace/tracer).
//
// A stop has one effect in the kernel: if a thread is stopped in one of a few system calls, such as epoll_wait, semop and sigtimedwait, that call
// fails with EINTR, as after SIGCONT (signal(7), "Interruption of system calls and library functions by stop signals"). All other calls continue.
package ptrace

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"example.com/reframe/ptrace/tracer"
)

// Sentinel errors. The package returns them wrapped in an [*Error].
var (
	ErrNoProcess     = errors.New("no such process")
	ErrPermission    = errors.New("operation not permitted")
	ErrProcessExited = errors.New("the process ended while it was being read")
	// ErrReleased means that the stopped process was resumed, so its stopped state can no longer be read. It also is an ErrProcessExited.
	ErrReleased        error = releasedError{}
	Err32Bit                 = errors.New("a 32-bit process; only 64-bit ones can be read")
	ErrObjectsChanging       = errors.New("the registered JIT objects kept changing while they were read")
)

// Error is the failure of an operation on a process, with advice.
type Error struct {
	PID  int
	Op   string // the operation, in words for users
	Err  error
	Hint string // what to do next, or ""
}

func (e *Error) Error() string {
	s := fmt.Sprintf("process %d: %s: %v", e.PID, e.Op, e.Err)
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// explain returns an [*Error] for an error, with the sentinel for its errno and a hint.
func explain(pid int, op string, err error) error {
	var already *Error
	switch {
	case errors.As(err, &already):
		return err
	case errors.Is(err, syscall.ESRCH) || errors.Is(err, os.ErrNotExist):
		return &Error{pid, op, ErrProcessExited, ""}
	case errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.ENOSYS):
		return denied(pid, op, err)
	}
	return &Error{pid, op, err, ""}
}

// needLive returns an error with advice if this platform does not support running processes. what describes the operation.
func needLive(what string) error {
	if tracer.Supported {
		return nil
	}
	return fmt.Errorf("%s requires Linux on amd64 or arm64, and this reframe is built for %s/%s: record a core of the process there (gcore, or reframe record -p PID -o CORE), and read the core with --core",
		what, runtime.GOOS, runtime.GOARCH)
}
