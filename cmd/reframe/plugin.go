package main

import (
	"io"

	"github.com/spf13/cobra"

	"example.com/reframe/internal/debug/plugin"
)

func (a *app) gdbCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "gdb",
		Short: "Print a file with commands for gdb",
		Long: `gdb prints a Python file for gdb 13 and newer, and for gdb-multiarch. Inside gdb the file provides the
commands "reframe frames", "reframe explain", "reframe resume" and "reframe record" for the process,
core or remote target that gdb has stopped. bt then passes through JIT code without CFI, and shows
recorded values, names of JIT code and frames of virtual machines. doc/user/inside.md describes all.

The commands start the program reframe of the PATH, or that of "set reframe program".

Exit status: 0 OK, 2 error.`,
		Example: `  reframe gdb > reframe.py
  gdb -x reframe.py -p 41822 -ex 'reframe frames --ir loop.ll' -ex bt
  reframe gdb >> ~/.gdbinit.py                 # with "source ~/.gdbinit.py" in ~/.gdbinit`,
		Args:              withoutArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(a.stdout, plugin.GDB())
			return err
		},
	}
}

// withoutArguments rejects positional arguments.
func withoutArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%s takes no argument %q: it prints a file for the debugger", c.Name(), args[0])
	}
	return nil
}
