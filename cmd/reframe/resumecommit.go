package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/commit"
	"example.com/reframe/internal/check/handover"
	"example.com/reframe/internal/cli/flags"
	"example.com/reframe/internal/report/text"
	"example.com/reframe/internal/vm/protocol"
	"example.com/reframe/ptrace"
)

// commitOptions say whether the effects of the interpreter are written to the process.
type commitOptions struct{ commit, dry bool }

func (o commitOptions) check() error {
	if o.dry && !o.commit {
		return usage("--dry-run requires --commit")
	}
	return nil
}

// commit runs the chosen frames of a traced process, writes the result into the process, and prints it.
func (a *app) commit(ctx context.Context, k *inputs, dry bool, r *flags.Resume) error {
	if len(k.objects) > 0 {
		return usage("--object cannot be combined with --commit: nothing is written for an unregistered object")
	}
	o, err := k.options(a)
	if err != nil {
		return err
	}
	began := time.Now()
	s, err := ptrace.Open(ctx, k.pid)
	if err != nil {
		return err
	}
	p, err := a.committed(ctx, s, k, o, dry, r)
	defer s.KeepFiles()() // source lines are read after the process has resumed
	err = errors.Join(err, s.Detach())
	pause := time.Since(began)
	if err != nil && p.ran && !errors.Is(err, ptrace.ErrProcessExited) {
		err = fmt.Errorf("%w (%s)", err, text.Paused(fmt.Sprintf("process %d", k.pid), pause, s.Stopped()))
	}
	if err != nil {
		return err
	}
	p.report.PauseUS = new(pause.Microseconds())
	if a.json {
		return text.WriteJSON(a.stdout, p.report)
	}
	if err := p.show(text.Fold(a.stdout)); err != nil {
		return err
	}
	fmt.Fprintln(text.Fold(a.stderr), text.Paused(fmt.Sprintf("pid %d", k.pid), pause, s.Stopped()))
	return nil
}

// prepared holds the result of an interpreter.
type prepared struct {
	ran    bool // the interpreter ran, possibly without a result
	report *frame.Resumed
	commit *commit.Commit
	show   func(io.Writer) error
}

// committed runs the interpreter while the process is stopped, and unless dry is set writes the result.
func (a *app) committed(ctx context.Context, s *ptrace.Session, k *inputs, o deopt.Options, dry bool, r *flags.Resume) (p prepared, err error) {
	t, err := s.Target()
	if err == nil && k.describes() {
		t, err = k.description(ctx, a, t, true, &o)
	}
	if err != nil {
		return p, err
	}
	view, err := deopt.Frames(t, o)
	if err != nil {
		return p, err
	}
	if r.With != "" {
		err = a.prepareWith(ctx, s, view, r, &p)
	} else {
		err = a.prepare(ctx, s, view, r, &p)
	}
	if err == nil && !dry {
		err = p.commit.Write()
	}
	return p, err
}

// prepare runs the reference interpreter, and stores the result in p.
func (a *app) prepare(ctx context.Context, s *ptrace.Session, view *deopt.View, r *flags.Resume, p *prepared) error {
	stack, err := pick(view, r.Choice)
	if err != nil {
		return err
	}
	stack.Result = r.Result
	if p.report, p.commit, err = commit.Prepare(ctx, s, stack, r.Limits); err != nil {
		p.ran = p.report != nil
		return fmt.Errorf("nothing is committed: %w", bounded(err))
	}
	p.show = func(w io.Writer) error {
		stack.Sources(deopt.QuickSources)
		return text.PrintResumed(w, a.style(), p.report, stack.Frames)
	}
	return nil
}

// prepareWith runs the user's own interpreter, and stores the result in p.
func (a *app) prepareWith(ctx context.Context, s *ptrace.Session, view *deopt.View, r *flags.Resume, p *prepared) error {
	stack, err := pickVM(view, r.Choice, r.Result)
	if err != nil {
		return err
	}
	p.report, p.commit, err = commit.PrepareWith(s, stack, func(request *protocol.Resume) (*handover.Ran, error) {
		p.ran = true
		return a.handOver(ctx, stack, request, r)
	})
	if err != nil {
		return fmt.Errorf("nothing is committed: %w", bounded(err))
	}
	p.show = func(w io.Writer) error { return text.PrintResumedWith(w, a.style(), p.report, stack.Frames) }
	return nil
}
