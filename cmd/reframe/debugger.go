package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"example.com/reframe/ptrace"
	"example.com/reframe/ptrace/remote"
)

// kinds lists the flags of which each selects a target.
var kinds = []string{"pid", "core", "remote"}

// kindsGiven returns those of them that were given.
func kindsGiven(c *cobra.Command) (list []string) {
	for _, name := range kinds {
		if c.Flags().Changed(name) {
			list = append(list, name)
		}
	}
	return list
}

// debuggerHelp is the help text of every verb that can look at a process that another debugger holds.
const debuggerHelp = `--remote ADDR looks at the process that a stub of gdb's remote protocol holds: gdbserver,
lldb-server, qemu, valgrind. It changes nothing there, and the process stays stopped.`

// debuggerFlags adds --remote.
func (k *inputs) debuggerFlags(c *cobra.Command) {
	c.Flags().StringVar(&k.remote, "remote", "", "look at the process that a stub holds: `ADDR` is host:port, unix:PATH or '| COMMAND'")
}

// waitFlag adds --timeout.
func (k *inputs) waitFlag(c *cobra.Command) {
	c.Flags().DurationVar(&k.wait, "timeout", time.Minute, "with --remote: bound the time for all answers of the stub")
}

// still reports whether the target does not run: a core, or a process that another debugger holds.
func (k *inputs) still() bool { return k.core != "" || k.remote != "" }

// openStill opens such a target.
func (k *inputs) openStill(ctx context.Context, o ptrace.CoreOptions) (*ptrace.Target, error) {
	if k.core != "" {
		return ptrace.OpenCore(k.core, o)
	}
	state, err := remote.Open(ctx, k.remote, remote.Options{Timeout: k.wait})
	if err != nil {
		return nil, &ptrace.HeldError{Addr: k.remote, Err: err, Hint: remoteHint(err)}
	}
	return ptrace.OpenHeld(state, o)
}

// remoteHint returns what a user can do after an error of a stub.
func remoteHint(err error) string {
	if errors.Is(err, remote.ErrNoProcess) {
		return "start one in it, or attach it to one: gdbserver HOST:PORT --attach PID"
	}
	return ""
}
