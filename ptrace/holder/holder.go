// Package holder describes a stopped process that another debugger holds, such as gdbserver or Delve.
//
// Its main type is State. Each kind of debugger has a package that creates a State, from which package ptrace makes a target.
//
// # Security
//
// All data comes from the other debugger and is hostile. This package bounds the memory of its cache. The packages that create a State bound
// everything else: threads, mappings, files, and the time of each request.
package holder

import (
	"os"

	"example.com/reframe/internal/machine"
)

// Kind is the kind of a debugger that holds a process.
type Kind string

const (
	Remote Kind = "remote" // a stub of gdb's remote serial protocol
	Delve  Kind = "delve"  // Delve's headless server
	GDB    Kind = "gdb"    // the stub that package plugin runs inside gdb
	LLDB   Kind = "lldb"   // the stub that package plugin runs inside lldb
)

// State is the state of a process that a debugger has stopped. While a State is open, the process does not run and its state does not change, unless
// the State's Control resumes it.
type State struct {
	Kind Kind
	Addr string // address of the debugger, as given by the user
	Arch *machine.Arch
	PID  int // the number of the process on its own machine; 0 if unknown
	// Command is the command line, or else Program; "" if unknown.
	Command string
	Threads []machine.Thread
	// Auxv is the auxiliary vector (getauxval(3)) in the byte order of Arch; nil if unknown.
	Auxv []byte
	// Program is the path of the program's file; "" if unknown.
	Program string
	// Mappings are in ascending order and do not overlap. They are nil if the debugger does not list them. In that case Program and Files name the
	// mapped files.
	Mappings []machine.Mapping
	Files    []File
	Memory   Memory
	// Open opens a file that the process has mapped. It is nil if the files are those of this machine.
	Open func(path string) (*os.File, error)
	// Notes are remarks about data that the debugger did not provide.
	Notes []string
	// Control runs the process. It is nil if it was not requested, or if the debugger only reads.
	Control Control
	// Close ends the connection. Depending on the debugger, the process then stays stopped, continues or ends.
	Close func() error
}

// File is a file that is loaded in the process.
type File struct {
	Path string
	Bias machine.Addr // address in memory minus address in the file
}

// Memory reads the memory of a process. Only one goroutine at a time may call Read.
type Memory interface {
	// Read fills p with the memory at an address, and returns the number of bytes before the first one that cannot be read. If that number is less
	// than len(p), it returns an error. If the debugger no longer answers, this error and those of all later calls wrap [ErrLost].
	Read(p []byte, addr machine.Addr) (int, error)
}
