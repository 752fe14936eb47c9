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

The commands run reframe from PATH, or the program given with "set reframe program".

Exit status: 0 OK, 2 error.`,
		Example: `  reframe gdb > reframe_gdb.py
  gdb -p 41822 -x reframe_gdb.py -ex 'reframe frames --ir loop.ll' -ex bt
  echo source $PWD/reframe_gdb.py >> ~/.gdbinit    # for every gdb`,
		Args:              withoutArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(a.stdout, plugin.GDB())
			return err
		},
	}
}

func (a *app) lldbCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "lldb",
		Short: "Print a file with commands for lldb",
		Long: `lldb prints a Python file for lldb 19 and newer. Inside lldb the file provides the commands
"reframe frames", "reframe explain", "reframe resume" and "reframe record" for the process, core or
remote target that lldb has stopped. doc/user/inside.md describes all.

lldb imports the file by its name, so the name must end with .py and must not be lldb.py. The commands
run reframe from PATH, or the program given with "reframe program FILE".

Exit status: 0 OK, 2 error.`,
		Example: `  reframe lldb > reframe_lldb.py
  lldb-19 -p 41822 -o 'command script import reframe_lldb.py' -o 'reframe frames --ir loop.ll'`,
		Args:              withoutArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(a.stdout, plugin.LLDB())
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
