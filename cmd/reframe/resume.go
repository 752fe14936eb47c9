package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/cli/flags"
	"example.com/reframe/internal/report/text"
	"example.com/reframe/ptrace"
)

func (a *app) resumeCommand() *cobra.Command {
	var k inputs
	var o flags.Resume
	var write commitOptions
	c := &cobra.Command{
		Use:   "resume {PID | CORE} {--ir FILE.ll | --with COMMAND} [-f N] [--to-frame N]",
		Short: "Run frames of a process or a core in the reference interpreter",
		Long: `resume stops the process, rebuilds one frame, and runs it in the reference interpreter until its
function returns. The interpreter reads the process's memory on demand; it writes only to its own
copy. Afterwards the process continues unchanged.

The default is the innermost frame that has a record. With --to-frame its callers resume too, as
one stack: each gets the result of the one before. --to-frame all continues up to the first caller that
is native code or cannot be resumed, and shows that caller.

A frame that was found by a guess, or lies beyond one that was, may not exist. It is resumed
only with --force, and the result is then no more certain than the guess.

If the frame waits for a call, --result gives the result of that call: an integer, a
pointer (0x..., null) or a float, of the call's type.

With --with the VM's own interpreter runs, and no IR is needed. sh -c starts COMMAND, which receives the
frames of the virtual machine that a layout describes, and reads and writes memory through reframe.
It writes only to the copy unless --commit is given. doc/user/protocol.md has the protocol, and files to
copy for C, C++ and Python.

With --commit the process continues with the interpreter's result: its stores are
written to the process's memory, and the thread continues in the caller of the outermost of these
frames, as if that frame had returned the result. The native frames are discarded without running
anything in them. Either everything is written or nothing. Nothing is written if it is not certain
that the thread can continue there, or if the interpreter had an effect outside of the process's memory,
such as output; with --with also if it allocated or took a lock. --dry-run shows what would be
written, and writes nothing.

` + positionalHelp + ` ` + coreHelp + `

` + debuggerHelp + `
The interpreter reads the core's memory on demand. If a page is missing, the run ends there and
reports the page.`,
		Example: `  reframe resume 41822 --ir loop.ll --layout loop.layout.json
  reframe resume -p 41822 --ir loop.ll -f 2 --steps 1000000
  reframe resume -p 41822 --ir loop.ll --function sum_opt --json
  reframe resume -p 41822 --ir loop.ll -f 2 --to-frame 4
  reframe resume -p 41822 --ir loop.ll -f 2 --to-frame all --result -1
  reframe resume -p 41822 --ir loop.ll --layout loop.layout.json --commit --dry-run
  reframe resume --core exit.core --ir loop.ll --layout loop.layout.json
  reframe resume -p 41822 --layout simple --with './vm --serve program.vm'
  reframe resume -p 41822 --with './vm --serve program.vm' --commit`,
		Args:              onlyTarget,
		ValidArgsFunction: completeTarget,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Read(c.Flags()); err != nil {
				return usage("%v", err)
			}
			if err := write.check(); err != nil {
				return err
			}
			if write.commit && o.Choice.Force {
				return usage("--force cannot be combined with --commit: a process is never changed by a guess")
			}
			if write.commit && k.still() {
				return usage("--commit requires a process that runs: -p PID")
			}
			if err := k.check(c); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), o.Timeout)
			defer cancel()
			if write.commit {
				return a.commit(ctx, &k, write.dry, &o)
			}
			k.depth = o.Choice.Depth()
			t, view, err := k.look(a, c, true)
			if err != nil {
				return err
			}
			defer t.Close()
			if o.With != "" {
				return a.resumeWith(ctx, t, view, &o)
			}
			return a.resume(ctx, t, view, o.Choice, o.Result, o.Limits)
		},
	}
	k.addFlags(c)
	k.selfFlag(c)
	f := c.Flags()
	o.Add(f, flags.Usage{
		"frame":    "resume the frame with this `number`" + frameNumbers,
		"function": "resume the innermost frame of the function with this `NAME`, or /RE/",
		"to-frame": "resume its callers too, up to the frame with this `number`, or all",
		"call":     "assume that native function NAME returns VALUE: `NAME=VALUE`, or NAME= for a void function (repeatable)",
		"result":   "the result `value` of the call that the frame waits for",
		"with":     "run the VM's own interpreter on its frames: the shell command `COMMAND`, which speaks doc/user/protocol.md",
		"force":    "also resume frames that are a guess",
		"steps":    "stop after `N` instructions (default 1000000000)",
		"timeout":  "release the process after this time",
	})
	unnumbered(c)
	f.BoolVar(&write.commit, "commit", false, "write the interpreter's effects into the process, which continues from there")
	f.BoolVar(&write.dry, "dry-run", false, "with --commit: show what would be written, and write nothing")
	f.BoolVar(&a.json, "json", false, "print one JSON object (schema "+frame.ResumedSchema+")")
	return c
}

// pick returns the chosen frames.
func pick(view *deopt.View, c deopt.Choice) (*deopt.Stack, error) {
	stack, err := view.Pick(c)
	if errors.Is(err, deopt.ErrNoFrame) && view.Records() == 0 {
		return nil, &status{exitFailed, view.WhyNone()}
	}
	return stack, err
}

// bounded names the flags for the time limit in the error of a run that took too long.
func bounded(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w; --timeout and --steps set the limits", err)
	}
	return err
}

// resume runs the chosen frames and prints the result.
func (a *app) resume(ctx context.Context, t *ptrace.Target, view *deopt.View, c deopt.Choice, result string, l deopt.Limits) error {
	stack, err := pick(view, c)
	if err != nil {
		return err
	}
	stack.Result = result
	out, err := view.Run(ctx, stack, l)
	pause := t.Release()
	if err != nil {
		err = bounded(err)
		if out != nil && t.Provider == ptrace.FromProcess { // the interpreter ran while the process was stopped
			err = fmt.Errorf("%w (%s)", err, text.Paused(t.String(), pause, t.Stopped))
		}
		return err
	}
	if t.Provider == ptrace.FromProcess {
		out.PauseUS = new(pause.Microseconds())
	}
	if a.json {
		return text.WriteJSON(a.stdout, out)
	}
	stack.Sources(deopt.QuickSources)
	if err := text.PrintResumed(text.Fold(a.stdout), a.style(), out, stack.Frames); err != nil || t.Provider != ptrace.FromProcess {
		return err
	}
	fmt.Fprintln(text.Fold(a.stderr), text.Paused(fmt.Sprintf("pid %d", t.PID), pause, t.Stopped))
	return nil
}
