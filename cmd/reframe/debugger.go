package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"example.com/reframe/internal/cli/flags"
	"example.com/reframe/ptrace"
	"example.com/reframe/ptrace/delve"
	"example.com/reframe/ptrace/remote"
)

// kinds lists the flags that select a target.
var kinds = []string{"pid", "core", "remote", "delve"}

// kindsGiven returns the flags in kinds that the user set.
func kindsGiven(c *cobra.Command) (list []string) {
	for _, name := range kinds {
		if c.Flags().Changed(name) {
			list = append(list, name)
		}
	}
	return list
}

// debuggerHelp is the help text of every verb that can read a process which another debugger holds.
const debuggerHelp = `--remote ADDR looks at the process that a stub of gdb's remote protocol holds: gdbserver,
lldb-server, qemu, valgrind. --delve ADDR looks at the process that dlv --headless holds.
Both read, and send nothing that changes the process. When reframe disconnects, some
of these debuggers let the process run or end it (doc/user/remote.md, delve.md).`

// debuggerFlags adds --remote and --delve.
func (k *inputs) debuggerFlags(c *cobra.Command) {
	c.Flags().StringVar(&k.remote, "remote", "", "look at the process that a stub holds: `ADDR` is host:port, unix:PATH or '| COMMAND'")
	c.Flags().StringVar(&k.delve, "delve", "", "look at the process that dlv --headless holds: `ADDR` is host:port or unix:PATH")
}

// remoteFlags adds --remote and the flags for its files, for a verb that runs the process and does not read cores.
func (k *inputs) remoteFlags(c *cobra.Command) {
	k.withoutCore(c, "core", "delve")
	f := c.Flags()
	f.StringVar(&k.remote, "remote", "", "control the process that a stub holds: `ADDR` is host:port, unix:PATH or '| COMMAND'")
	flags.Core(f, &k.files, flags.Usage{
		"exe":     "with --remote: `FILE` is its program, instead of the one that it names",
		"sysroot": "with --remote: look only below `DIR` for the files that the stub names",
	})
	k.replyFlag(c)
}

// replyFlag adds --timeout for a verb that runs the process: the answers of a stub have separate time limits.
func (k *inputs) replyFlag(c *cobra.Command) {
	c.Flags().DurationVar(&k.wait, "timeout", 0, "with --remote: bound the `TIME` of the first answers together, and of each later one (default 1m0s and 10s)")
	k.waits = true
}

// waitFlag adds --timeout for a verb that reads one moment: all answers of the debugger have one time limit.
func (k *inputs) waitFlag(c *cobra.Command) {
	c.Flags().DurationVar(&k.wait, "timeout", time.Minute, "with --remote or --delve: bound the time for all answers")
	k.waits = true
}

// checkWait rejects --timeout without a debugger, and values that are not positive.
func (k *inputs) checkWait(c *cobra.Command) error {
	switch {
	case !k.waits || !c.Flags().Changed("timeout"):
		return nil
	case k.remote == "" && k.delve == "":
		return usage("--timeout requires %s", map[bool]string{false: "--remote or --delve", true: "--remote"}[k.controls])
	case k.wait <= 0:
		return usage("--timeout %v: must be above 0", k.wait)
	}
	return nil
}

// still reports whether the verb does not run the target, which is a core, or a process that another debugger holds.
func (k *inputs) still() bool {
	return k.core != "" || k.delve != "" || k.remote != "" && !k.controls
}

// elsewhere reports whether the target is anything except a process that reframe reads by its number.
func (k *inputs) elsewhere() bool { return k.core != "" || k.delve != "" || k.remote != "" }

// attach controls the process of -p or of --remote.
func (k *inputs) attach(ctx context.Context) (*ptrace.Session, error) {
	objects, err := k.given()
	if err != nil {
		return nil, err
	}
	if k.remote != "" {
		state, err := remote.Open(ctx, k.remote, remote.Options{Timeout: k.wait, Control: true, Program: k.files.Exe})
		if err != nil {
			return nil, &ptrace.HeldError{Addr: k.remote, Err: err, Hint: remoteHint(err)}
		}
		o := k.files
		o.Given = objects
		return ptrace.OpenSession(state, o)
	}
	s, err := ptrace.Open(ctx, k.pid)
	if err == nil {
		s.Give(objects)
	}
	return s, err
}

// openStill opens a target for which still returns true.
func (k *inputs) openStill(ctx context.Context, o ptrace.CoreOptions) (*ptrace.Target, error) {
	if k.core != "" {
		return ptrace.OpenCore(k.core, o)
	}
	if k.delve != "" {
		state, err := delve.Open(ctx, k.delve, delve.Options{Timeout: k.wait, Program: o.Exe != ""})
		if err != nil {
			return nil, &ptrace.HeldError{Addr: k.delve, Err: err, Hint: delveHint(err)}
		}
		return ptrace.OpenHeld(state, o)
	}
	state, err := remote.Open(ctx, k.remote, remote.Options{Timeout: k.wait, Program: o.Exe})
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

// delveHint returns what a user can do after an error of a server of dlv.
func delveHint(err error) string {
	switch {
	case errors.Is(err, delve.ErrConnect):
		return "start the server: dlv attach PID --headless --accept-multiclient --listen ADDR"
	case errors.Is(err, delve.ErrRunning):
		return "halt it in dlv first, with Ctrl-C or the command halt"
	case errors.Is(err, delve.ErrCore):
		return "read the core itself: --core FILE"
	}
	return ""
}
