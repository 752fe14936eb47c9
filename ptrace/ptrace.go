// Package ptrace opens targets: a running process, which it stops only to copy its state; a process that runs under control from one breakpoint to
// the next; or a core.
//
// Its main type is [Target]: the threads of a process with their registers, the
// memory that was copied while they were stopped, the files that are mapped, and
// the objects that a JIT registered with the GDB JIT interface.
//
// A [Session] controls a process: it runs to breakpoints, gives a Target wherever it is stopped, runs one thread alone, and changes memory and
// registers on request. Another process, the tracer (package ptrace/tracer), does the tracing.
//
// A capture has three parts. Before the stop it reads what does not change while it is in use: mappings, the headers of files, the list of
// registered objects, and which pages of code differ from the file. The stop itself copies registers, stacks and code that is in no file, and does
// not depend on how much is registered. After the stop, what was read before is compared with what is there now; if that has changed, the capture
// starts again.
//
// A core is read by the same code, from the segments of its file and, for what it omits, from the files that were mapped: never where the process
// may have overwritten those, and never from a file that is known to be a different one now.
//
// # Security
//
// All that is read from the process is hostile. Sizes are checked against limits before anything is allocated, lists are walked with a bound, and a
// process that dies, forks or unmaps in the middle gives an error.
//
// A core is hostile, too, and may name any file. Only regular files are opened, for reading, and they are ignored unless they are ELF images. Its
// memory is read on demand; lists in it are checked against its size.
//
// A capture writes nothing into the process. It is seized (PTRACE_SEIZE), so the kernel resumes the process when the reader dies, however it dies.
//
// A session writes breakpoints, and the changes of [Session.Commit]. The breakpoints are removed however it ends; if this process is killed, the
// tracer removes them, and if that is killed too, its watchdog does (package ptrace/tracer).
//
// The kernel leaves one trace: a thread that is stopped in one of a few system calls, such as epoll_wait, semop and sigtimedwait, has that call
// fail with EINTR, as it would after SIGCONT (signal(7), "Interruption of system calls and library functions by stop signals"). All other calls
// continue.
package ptrace

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"example.com/reframe/ptrace/tracer"
)

// Sentinel errors. They come wrapped in an [*Error].
var (
	ErrNoProcess  = errors.New("no such process")
	ErrPermission = errors.New("operation not permitted")
	ErrGone       = errors.New("the process ended while it was being read")
	// ErrReleased is an ErrGone too: what was stopped is not stopped any more.
	ErrReleased  error = releasedError{}
	Err32Bit           = errors.New("a 32-bit process; only 64-bit ones can be read")
	ErrUnsettled       = errors.New("the registered JIT objects kept changing while they were read")
)

// Error is an operation that failed on a process, with advice.
type Error struct {
	PID  int
	Op   string // the operation, in plain words
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

// explain turns an errno into the sentinel that it means, with a hint.
func explain(pid int, op string, err error) error {
	var already *Error
	switch {
	case errors.As(err, &already):
		return err
	case errors.Is(err, syscall.ESRCH) || errors.Is(err, os.ErrNotExist):
		return &Error{pid, op, ErrGone, ""}
	case errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.ENOSYS):
		return denied(pid, op, err)
	}
	return &Error{pid, op, err, ""}
}

// needLive returns an error if running processes are not supported here, with advice. what is the operation.
func needLive(what string) error {
	if tracer.Supported {
		return nil
	}
	return fmt.Errorf("%s needs Linux on amd64 or arm64, and this reframe is built for %s/%s: keep the process as a core there (gcore, or reframe record -p PID -o CORE), and look at that with --core",
		what, runtime.GOOS, runtime.GOARCH)
}
