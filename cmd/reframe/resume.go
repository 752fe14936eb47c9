package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/cli/flags"
	"example.com/reframe/internal/cli/fold"
	"example.com/reframe/ptrace"
)

func (a *app) resumeCommand() *cobra.Command {
	var k inputs
	var o flags.Resume
	var write commitOptions
	c := &cobra.Command{
		Use:   "resume {PID | CORE} {--ir FILE.ll | --with COMMAND} [-f N] [--to-frame N]",
		Short: "Run frames of a process or a core in the reference interpreter",
		Long: `resume holds the process, rebuilds one frame, and lets the reference interpreter
resume from there until the function returns. It reads the process's memory as it
touches it; what it writes stays in its own copy. The process goes on as it was.

Without -f and --function it takes the innermost frame that has a record. With
--to-frame its callers resume too, as one stack: each gets what the one before it
returned. --to-frame all goes on up to the first caller that is native code or cannot
be resumed, and says which that is.

A frame that was found by a guess, or lies beyond one that was, may be none: nothing
goes on from it without --force, and what comes of it then is as good as the guess.

Where the frame waits for a call, --result says what that returns: an integer, a
pointer (0x..., null) or a float, of the call's type.

With --with the VM's own interpreter goes on, and no IR is needed: sh -c runs COMMAND, which is
handed the frames of the virtual machine that a layout reads, and reads and writes memory through reframe; what it
writes stays in the copy unless --commit is given. doc/protocol.md has the protocol, and files to copy for C, C++ and Python.

With --commit the process does not go on as it was: what the interpreter stored is
written to its memory, and the thread goes on in the caller of the outermost of these
frames as if that had returned what the interpreter did. The native frames are left as
they are. All of it is written or nothing; nothing is where it is not sure that the
thread can go on so, or where the interpreter did what is not in the process's memory,
such as to print; with --with, to allocate or to take a lock too. --dry-run says what
would be written and writes nothing.

` + positionalHelp + ` ` + coreHelp + `
The interpreter reads memory of the core as it touches it; where a page is not in it,
the run ends there and says which.`,
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
				return usage("--force does not go with --commit: the thread goes on in the callers of these frames, and a process is not changed by a guess")
			}
			if write.commit && k.core != "" {
				return usage("--commit writes into a process, and a core is none: -p PID")
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
		"frame":    "the frame of this `number`" + frameNumbers,
		"function": "the innermost frame of the function of this `NAME`, or /RE/",
		"to-frame": "its callers too, up to the frame of this `number`, or all",
		"call":     "a function that exists only as native code returns this: `NAME=VALUE`; NAME= where it returns nothing; may be given again",
		"result":   "the `value` that the call returns for which the frame waits",
		"with":     "the VM's own interpreter goes on in its frames: `COMMAND`, for sh, which speaks doc/protocol.md",
		"force":    "go on from frames, too, that are a guess",
		"steps":    "stop after `N` instructions (default 1000000000)",
		"timeout":  "let go of the process after this time",
	})
	unnumbered(c)
	f.BoolVar(&write.commit, "commit", false, "write what the interpreter did into the process, which goes on from there")
	f.BoolVar(&write.dry, "dry-run", false, "with --commit: say what would be written, and write nothing")
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
		return fmt.Errorf("%w; --timeout and --steps say how long it may take", err)
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
		if out != nil && t.Core == "" { // the interpreter ran while the process was stopped
			err = fmt.Errorf("%w (%s)", err, stoodStill(t.String(), pause, t.Stopped))
		}
		return err
	}
	if t.Core == "" {
		out.PauseUS = new(pause.Microseconds())
	}
	if a.json {
		return writeJSON(a.stdout, out)
	}
	stack.Sources(deopt.QuickSources)
	if err := printResumed(fold.To(a.stdout), a.style(), out, stack); err != nil || t.Core != "" {
		return err
	}
	fmt.Fprintln(fold.To(a.stderr), stoodStill(fmt.Sprintf("pid %d", t.PID), pause, t.Stopped))
	return nil
}

// printResumed prints a finished run as text.
func printResumed(w io.Writer, s style, r *frame.Resumed, stack *deopt.Stack) error {
	var text strings.Builder
	printRan(&text, s, r, stack.Frames)
	outer, what := r.Frames[len(r.Frames)-1], "returned nothing"
	switch {
	case r.ExitCode != nil:
		what = fmt.Sprintf("called exit(%d)", *r.ExitCode)
	case r.Result != nil:
		what = valueReturned(s, r.Result)
	}
	from := "process"
	if stack.InCore() {
		from = "core"
	}
	kept := fmt.Sprintf("; %s kept away from the %s", count(r.Writes, "write"), from)
	if r.Committed != nil {
		kept = ""
	}
	fmt.Fprintf(&text, "%s %s after %s%s\n", printable(outer.Resume.Function), what, count(r.Steps, "instruction"), kept)
	if r.Committed != nil {
		printCommitted(&text, s, r.Committed)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// printRan prints the frames that ran in either interpreter, the given result of their call, and the output of the program.
func printRan(text *strings.Builder, s style, r *frame.Resumed, frames []*deopt.Frame) {
	for _, f := range frames {
		printFrame(text, s, &f.Frame)
	}
	if r.End != "" {
		fmt.Fprintf(text, "the stack ends here: %s\n", printable(r.End))
	}
	fmt.Fprintln(text)
	if given := r.Frames[0].Given; given != nil {
		fmt.Fprintf(text, "the call for which frame #%d waits returns %s %s, as --result says\n", r.Frame, printable(given.Type), printable(given.Value))
	}
	if e := r.Floats; e != nil && e.Known {
		fmt.Fprintf(text, "floating-point environment of the thread: %s\n", e.Text)
	} else if e != nil {
		fmt.Fprintf(text, "floating-point environment: assumed to be the default one: %s\n", printable(e.Reason))
	}
	if r.Output != "" {
		fmt.Fprintln(text, "it would have printed:")
		for line := range strings.Lines(r.Output) {
			fmt.Fprintf(text, "  | %s\n", printableLines(strings.TrimSuffix(line, "\n")))
		}
	}
}

// valueReturned describes the result of a run that returned a value.
func valueReturned(s style, r *frame.Result) string {
	return fmt.Sprintf("returned %s %s", printable(r.Type), s.bold(printable(r.Value)))
}
