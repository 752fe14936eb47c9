package replay

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/cli/flags"
	"example.com/reframe/ptrace"
)

func (c *call) set() error {
	if len(c.args) != 2 {
		return c.wrong("")
	}
	v, err := c.look()
	if err != nil {
		return err
	}
	t, f, err := c.current()
	if err != nil {
		return err
	}
	s, err := slotOf(f, c.args[0])
	if err != nil {
		return err
	}
	if s.OfVM() && !s.Read() {
		return c.changed(t)(v.SetVM(f, s.Name, c.args[1])) // the error gives the reason
	}
	if _, err := f.ParseSlot(s, c.args[1]); err != nil {
		return ofSlot(f, s, err)
	}
	if s.OfVM() {
		return c.changed(t)(v.SetVM(f, s.Name, c.args[1]))
	}
	if s.Name == "" {
		return otherwise("%s of %s: it has no name, so the code cannot use it", spelled(s), titled(f))
	}
	return c.changed(t)(v.Set(f, s.Name, c.args[1]))
}

// changed returns a function that installs a view in which a value of a thread's frame was set.
func (c *call) changed(t *deopt.Thread) func(*deopt.View, *deopt.Frame, error) error {
	return func(changed *deopt.View, f *deopt.Frame, err error) error {
		if err != nil {
			return unmet{err}
		}
		for i := range changed.Threads {
			if changed.Threads[i].ID == t.ID {
				t = &changed.Threads[i]
			}
		}
		c.view, c.frame, c.thread = changed, f, t
		c.forget()
		return nil
	}
}

func (c *call) resume() error {
	var o flags.Resume
	var thread int
	var json bool
	f := c.flags()
	flags.Thread(f, &thread, nil)
	o.Add(f, nil)
	f.BoolVar(&json, "json", false, "")
	if _, err := c.parse(f, 0, 0); err != nil {
		return err
	}
	if err := o.Read(f); err != nil {
		return c.wrong("%v", err)
	}
	v, err := c.look()
	if err != nil {
		return err
	}
	c.forget()
	if !f.Changed("frame") && !f.Changed("function") && !f.Changed("thread") && c.frame != nil {
		thread, o.Choice.Frame = c.thread.ID, c.frame.Index
	}
	if v, err = only(v, thread); err != nil {
		return err
	}
	if o.With != "" {
		return c.resumeWith(v, &o, json)
	}
	stack, err := v.Pick(o.Choice)
	if err != nil {
		if v.Records() == 0 {
			err = errors.New(v.WhyNone())
		}
		return unmet{err}
	}
	stack.Result = o.Result
	ctx, cancel := context.WithTimeout(c.ctx, o.Timeout)
	defer cancel()
	out, err := v.Run(ctx, stack, o.Limits)
	if err != nil {
		return unmet{err}
	}
	c.resumed, c.printed = out, &out.Output
	if out.ExitCode != nil {
		c.exit = &exit{code: *out.ExitCode}
	}
	if c.scripts.Printer == nil {
		return nil
	}
	if json {
		return c.scripts.Printer.JSON(c.out(), out)
	}
	return c.scripts.Printer.Resumed(c.out(), out, stack)
}

func (c *call) returns() error {
	if len(c.args) < 1 || len(c.args) > 2 {
		return c.wrong("")
	}
	switch {
	case c.resumed == nil:
		return errors.New("nothing was resumed; use resume first")
	case c.resumed.ExitCode != nil:
		return otherwise("it called exit(%d), and returned nothing", *c.resumed.ExitCode)
	case c.threw() != nil:
		return otherwise("it ended with an exception: %s", *c.threw())
	}
	r := c.resumed.Result
	want := strings.Join(c.args, " ")
	switch {
	case r == nil && want == "nothing":
		return nil
	case r == nil:
		return otherwise("it returned nothing, not %s", want)
	case len(c.args) == 2 && c.args[0] != r.Type:
		return otherwise("it returned %s %s, not %s", r.Type, r.Value, want)
	case want == "nothing":
		return otherwise("it returned %s %s, not nothing", r.Type, r.Value)
	}
	last := c.args[len(c.args)-1]
	if c.resumed.With != nil && last != r.Value { // the VM may spell values differently from compiled code
		return otherwise("it returned %s %s, not %s", r.Type, r.Value, want)
	}
	same, err := sameResult(r, last)
	if err != nil {
		return err
	}
	if !same {
		return otherwise("it returned %s %s, not %s", r.Type, r.Value, want)
	}
	return nil
}

func (c *call) prints() error {
	if len(c.args) != 1 {
		return c.wrong("")
	}
	if c.printed == nil {
		return errors.New("no program has ended; use continue or resume first")
	}
	if got := *c.printed; got != c.args[0] && got != c.args[0]+"\n" {
		return otherwise("it printed %q, not %q", got, c.args[0])
	}
	return nil
}

// endsPrograms reports whether a script may expect a signal: only one that commonly ends programs (signal(7)), by its number on x86-64.
func endsPrograms(signal int) bool {
	return signal > 0 && signal <= 15 || signal == 24 || signal == 25 || signal == 31
}

func (e *exit) String() string {
	if endsPrograms(e.signal) {
		return "it was killed by " + ptrace.SignalName(e.signal)
	}
	if e.signal != 0 {
		return fmt.Sprintf("it was killed by signal %d", e.signal)
	}
	return fmt.Sprintf("it exited with status %d", e.code)
}

func (c *call) exits() error {
	if len(c.args) != 1 {
		return c.wrong("")
	}
	want := exit{}
	if number := ptrace.SignalNumber(c.args[0]); endsPrograms(number) {
		want.signal = number
	} else if code, err := strconv.Atoi(c.args[0]); err == nil {
		want.code = code
	} else {
		return c.wrong("%s: expected a status, or a signal such as SIGSEGV", c.args[0])
	}
	switch {
	case c.exit == nil && c.resumed != nil:
		return otherwise("it did not exit: the function returned")
	case c.exit == nil:
		return errors.New("no program has ended; use continue or resume first")
	case *c.exit != want:
		return otherwise("%v, not %s", c.exit, c.args[0])
	}
	return nil
}
