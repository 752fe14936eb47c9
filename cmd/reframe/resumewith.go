package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/term"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/check/handover"
	"example.com/reframe/internal/cli/flags"
	"example.com/reframe/internal/report/text"
	"example.com/reframe/internal/vm/protocol"
	"example.com/reframe/ptrace"
)

// withTail is the number of the interpreter's last instructions in the JSON.
const withTail = 20

// resumeWith runs the user's own interpreter on the VM frames of the chosen frames, and prints the result.
func (a *app) resumeWith(ctx context.Context, t *ptrace.Target, view *deopt.View, o *flags.Resume) error {
	stack, err := pickVM(view, o.Choice, o.Result)
	if err != nil {
		return err
	}
	request, err := stack.Request() // check the request before the interpreter is started
	if err != nil {
		return err
	}
	ran, err := a.handOver(ctx, stack, request, o)
	pause := t.Release()
	if err != nil {
		err = bounded(err)
		if t.Provider == ptrace.FromProcess {
			err = fmt.Errorf("%w (%s)", err, text.Paused(t.String(), pause, t.Stopped))
		}
		return err
	}
	out := ran.Report
	if t.Provider == ptrace.FromProcess {
		out.PauseUS = new(pause.Microseconds())
	}
	if a.json {
		err = text.WriteJSON(a.stdout, out)
	} else if err = text.PrintResumedWith(text.Fold(a.stdout), a.style(), out, stack.Frames); err == nil && t.Provider == ptrace.FromProcess {
		fmt.Fprintln(text.Fold(a.stderr), text.Paused(fmt.Sprintf("pid %d", t.PID), pause, t.Stopped))
	}
	switch {
	case err != nil:
		return err
	case out.With.Unsupported != "":
		return &status{exitFailed, text.Printable(out.With.Interpreter) + " cannot continue: " + out.With.Unsupported}
	case out.With.Malformed != "":
		return &status{exitFailed, text.Printable(out.With.Interpreter) + " reports malformed frames: " + out.With.Malformed}
	}
	return nil
}

// pickVM returns the frames to pass to the interpreter, with the result of their call if one is given.
func pickVM(view *deopt.View, c deopt.Choice, result string) (*handover.Stack, error) {
	stack, err := handover.Pick(view, c)
	if err == nil && result != "" {
		if stack.Returned, err = handover.Given(result); err != nil {
			err = usage("--result: %v", err)
		}
	}
	return stack, err
}

// handOver starts the interpreter, passes the frames, and returns the result.
func (a *app) handOver(ctx context.Context, stack *handover.Stack, r *protocol.Resume, o *flags.Resume) (*handover.Ran, error) {
	r.Steps, r.Tail = o.Limits.Steps, withTail
	child, err := handover.Start(ctx, o.With, stack.View.Target(), a.stderr)
	if err != nil {
		return nil, err
	}
	defer child.Close()
	shown := a.requests()
	defer shown(0)
	return stack.Run(ctx, child, r, shown)
}

// requests returns a function that shows on a terminal how many requests the interpreter has sent. Called with 0 it clears the line.
func (a *app) requests() func(int) {
	if !term.IsTerminal(int(a.stderr.Fd())) || a.json {
		return func(int) {}
	}
	began, last := time.Now(), time.Duration(0)
	return func(n int) {
		since := time.Since(began)
		switch {
		case n == 0 && last > 0:
			fmt.Fprint(a.stderr, "\r\x1b[K")
		case n > 0 && since > progressAfter && since > last+progressAfter/5:
			last = since
			fmt.Fprintf(a.stderr, "\rthe interpreter has asked %s\x1b[K", text.Count(n, "time"))
		}
	}
}
