// Package plugin holds the programs that run inside gdb and lldb.
//
// Each is one file in Python. It is a stub of gdb's remote serial protocol, through which reframe reads the process that the debugger has stopped.
//
// # Security
//
// The stub listens on a socket in a directory that only the user can enter. It never changes the process: it has no packets that write.
package plugin

import (
	_ "embed"
	"strings"
)

//go:embed stub.py
var stub string

//go:embed gdb.py
var gdb string

//go:embed lldb.py
var lldb string

// LLDB returns the program for lldb.
func LLDB() string { return assemble(lldb) }

// GDB returns the program for gdb.
func GDB() string { return assemble(gdb) }

// assemble returns one file: the help of a debugger's program, then the stub, then the rest of the program.
func assemble(program string) string {
	const end = "\n\"\"\"\n\n"
	help, rest, _ := strings.Cut(program, end)
	return help + end + stub + "\n\n" + rest
}
