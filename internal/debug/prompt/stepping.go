package prompt

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/debug/session"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/vm/condition"
)

// step implements the step command.
func (p *Prompt) step(ctx context.Context, args string) error {
	if args == "-b" {
		return p.both(ctx, "")
	}
	n, err := number(args, 1)
	if err != nil {
		return err
	}
	return p.on(func(r run) error { return r.Step(ctx, uint64(n)) })
}

// next implements the next command.
func (p *Prompt) next(ctx context.Context, args string) error {
	n, err := number(args, 1)
	if err != nil {
		return err
	}
	return p.on(func(r run) error { return r.Next(ctx, uint64(n)) })
}

// finish implements the finish command.
func (p *Prompt) finish(ctx context.Context, args string) error {
	return p.on(func(r run) error { return r.Finish(ctx) })
}

// until implements the until command.
func (p *Prompt) until(ctx context.Context, args string) error {
	if args == "" {
		return wrong("")
	}
	if p.Session.With() {
		return p.untilVM(ctx, args)
	}
	r, err := p.Session.Resume()
	if err != nil {
		return err
	}
	frames := r.Frames()
	if len(frames) == 0 {
		return p.on(func(r run) error { return r.Continue(ctx) }) // Continue returns an error, because the run has ended
	}
	f := frames[0].Func
	b := f.Block(strings.TrimPrefix(args, "%"))
	if b == nil {
		return fmt.Errorf("@%s has no block %s; it has %s", f.Name, args, strings.Join(p.completeBlocks(nil), " "))
	}
	return p.on(func(run) error { return r.Until(ctx, b) })
}

// untilVM runs the interpreter of a virtual machine up to a position of the current method, a position of a named method, or the first place at which
// a condition holds.
func (p *Prompt) untilVM(ctx context.Context, args string) error {
	r, err := p.Session.ResumeVM()
	if err != nil {
		return err
	}
	if frames := r.Frames(); len(frames) > 0 && number64(args) {
		args = frames[0].Method + " @ " + args
	}
	c, is := condition.Place(args)
	if !is {
		if c, err = condition.Parse(args); err != nil {
			return err
		}
	}
	return p.on(func(run) error { return r.Until(ctx, c) })
}

func number64(text string) bool {
	_, err := strconv.ParseInt(text, 10, 64)
	return err == nil
}

// resume implements the resume command.
func (p *Prompt) resume(ctx context.Context, _ string) error {
	return p.on(func(r run) error { return r.Continue(ctx) })
}

// back implements the back command.
func (p *Prompt) back(ctx context.Context, args string) error {
	n, err := number(args, 1)
	if err != nil {
		return err
	}
	r := p.run()
	if r == nil {
		return errors.New("the interpreter has not run since the exit, so it cannot step back")
	}
	if r.Steps() == 0 {
		return errors.New("cannot step back from the exit: before it there is only native code")
	}
	if err := r.Back(ctx, uint64(n)); err != nil {
		return err
	}
	return p.standsIn(r)
}

// restart implements the restart command.
func (p *Prompt) restart(context.Context, string) error {
	if p.Session.With() {
		r, err := p.Session.ResumeVM()
		if err != nil {
			return err
		}
		r.Restart()
		return p.standsIn(r)
	}
	r, err := p.Session.Resume()
	if err == nil {
		err = r.Restart()
	}
	if err != nil {
		return err
	}
	return p.stands(r, nil)
}

// run is a run from an exit, of the reference interpreter or of a virtual machine's own interpreter.
type run interface {
	Step(ctx context.Context, n uint64) error
	Next(ctx context.Context, n uint64) error
	Finish(context.Context) error
	Continue(context.Context) error
	Back(ctx context.Context, n uint64) error
	Steps() uint64
	Output() string
}

// run returns the current run, or nil.
func (p *Prompt) run() run {
	if r := p.Session.VMRun(); r != nil {
		return r
	}
	if r := p.Session.Run(); r != nil {
		return r
	}
	return nil
}

// standsIn prints the position of a run of either interpreter.
func (p *Prompt) standsIn(r run) error {
	if vm, is := r.(*session.VMRun); is {
		return p.standsInVM(vm)
	}
	return p.stands(r.(*session.Run), nil)
}

// on calls do with the current run, which it starts if there is none, and prints the interpreter's new position.
func (p *Prompt) on(do func(run) error) error {
	if p.Session.With() {
		r, err := p.Session.ResumeVM()
		if err == nil {
			err = do(r)
		}
		if err != nil {
			return err
		}
		return p.standsInVM(r)
	}
	r, err := p.Session.Resume()
	if err != nil {
		return err
	}
	before, steps := r.Frames(), r.Steps()
	if err := do(r); err != nil {
		return err
	}
	var done *ir.Instr
	if r.Steps()-steps == 1 && len(before) > 0 && len(r.Frames()) == len(before) {
		done = before[0].At
	}
	return p.stands(r, done)
}

// stands prints the position of the interpreter: the instruction done, which ran last, with its value, and the next instruction. done may be nil.
func (p *Prompt) stands(r *session.Run, done *ir.Instr) error {
	p.listed = 0
	if err := p.Session.SetLevel(0); err != nil {
		return err
	}
	if done != nil && done.Name != "" {
		if v, ok := r.Value(0, done.Ref()); ok {
			p.instr(done, v.Value.Format())
		}
	}
	result, failed := r.Ended()
	switch {
	case failed != nil:
		p.printf("the interpreter cannot continue: %s\n", p.Printer.Printable(failed.Error()))
	case result != nil:
		p.printf("%s after %s\n", p.Printer.Bold(ended(result)), instructions(r.Steps()))
		return nil
	}
	at, err := p.Session.Level()
	if err != nil || at.Run == nil {
		return err
	}
	if done == nil || done.Block != at.Run.At.Block {
		p.runLine(at)
	}
	p.lineOf(at)
	return nil
}

// ended describes the result of a run.
func ended(r *interp.Result) string {
	switch {
	case r.ExitCode != nil:
		return fmt.Sprintf("called exit(%d)", *r.ExitCode)
	case r.Value.IsNone():
		return "returned"
	}
	return fmt.Sprintf("returned %s %s", r.Type, r.Value.Format())
}

func instructions(n uint64) string {
	if n == 1 {
		return "1 instruction"
	}
	return fmt.Sprintf("%d instructions", n)
}

// leaveRun implements the leave command.
func (p *Prompt) leaveRun(context.Context, string) error {
	p.Session.LeaveRun()
	p.listed = 0
	return p.here()
}

// output implements the output command.
func (p *Prompt) output(context.Context, string) error {
	r := p.run()
	if r == nil {
		return errors.New("the interpreter has not run since the exit")
	}
	for line := range strings.Lines(r.Output()) {
		p.printf("%s\n", p.Printer.Printable(line))
	}
	return nil
}

// set implements the set command.
func (p *Prompt) set(_ context.Context, args string) error {
	slot, value, ok := strings.Cut(args, " ")
	if value = strings.TrimPrefix(strings.TrimSpace(value), "= "); !ok || value == "" {
		return wrong("")
	}
	again := p.run() != nil
	is, err := p.Session.Set(slot, value)
	if err != nil {
		return err
	}
	p.printf("%s = %s\n", p.Printer.Printable(is.Name), p.valueText(is, false))
	if again {
		p.printf("the interpreter starts again at the exit\n")
	}
	return nil
}

// result implements the result command.
func (p *Prompt) result(_ context.Context, args string) error {
	if args == "" {
		return wrong("")
	}
	p.Session.SetResult(args)
	return nil
}
