// Package holder describes a stopped process that another debugger holds, such as gdbserver or Delve.
//
// Its main type is State. A package for each kind of debugger makes one, and package ptrace makes a target of it.
//
// # Security
//
// All data comes from the other debugger and is hostile. The package bounds the memory that its cache takes. The makers of a State bound everything
// else: threads, mappings, files, and the time of each request.
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
	LLDB   Kind = "lldb"   // the same inside lldb
)

// State is a process at the moment at which a debugger has stopped it. The process does not run, and its state does not change, while a State is open,
// unless its Control lets it run.
type State struct {
	Kind Kind
	Addr string // the address of the debugger, as the user gave it
	Arch *machine.Arch
	PID  int // the number of the process on its own machine; 0 if unknown
	// Command is the command line, or Program; "" if unknown.
	Command string
	Threads []machine.Thread
	// Auxv is the auxiliary vector (getauxval(3)) in the byte order of Arch; nil if unknown.
	Auxv []byte
	// Program is the path of the program's file; "" if unknown.
	Program string
	// Mappings are in ascending order and do not overlap. They are nil if the debugger does not list them; then Program and Files describe the memory.
	Mappings []machine.Mapping
	Files    []File
	Memory   Memory
	// Open opens a file that the process has mapped. It is nil if the files are those of this machine.
	Open func(path string) (*os.File, error)
	// Notes are remarks about data that the debugger did not provide.
	Notes []string
	// Control runs the process; nil if it was not asked for, or if the debugger only reads.
	Control Control
	// Close ends the connection. The debugger decides whether the process then stays stopped, continues or ends.
	Close func() error
}

// File is a file that is loaded in the process.
type File struct {
	Path string
	Bias machine.Addr // address in memory minus address in the file
}

// Memory reads the memory of a process. Read is called by one goroutine at a time.
type Memory interface {
	// Read fills p from an address on, and returns the number of bytes that it read before the first one that cannot be read. It returns an error if
	// that number is less than len(p). If the debugger no longer answers, the error wraps [ErrLost], and so do the errors of all later calls.
	Read(p []byte, addr machine.Addr) (int, error)
}
