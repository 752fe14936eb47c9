package deopt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/progspace"
	"example.com/reframe/ptrace"
)

// Limits bounds a run in the interpreter; a zero value means the interpreter's default.
type Limits struct {
	Steps  uint64
	Memory uint64
	// Calls gives the results of functions that exist only as native code, by function name, in the syntax of [ParseValue]; "" for a function that
	// returns nothing. Each call returns that result and has no other effect.
	Calls map[string]string
}

// Options returns the interpreter options for these limits. shift is added to the addresses of the interpreter's own memory.
func (l Limits) Options(shift uint64) interp.Options {
	funcs := map[string]interp.Builtin{}
	for name, text := range l.Calls {
		funcs[name] = func(c *interp.Invocation) (interp.Value, error) {
			switch {
			case c.Result.Kind == ir.VoidKind && text == "":
				return interp.Value{}, nil
			case c.Result.Kind == ir.VoidKind:
				return interp.Value{}, fmt.Errorf("@%s returns no value, but %s was given for it", name, text)
			}
			v, err := ParseValue(c.Result, text)
			if err != nil {
				return v, fmt.Errorf("the result of @%s: %w", name, err)
			}
			return v, nil
		}
	}
	return interp.Options{MaxSteps: l.Steps, MaxMemory: l.Memory, Shift: shift, Funcs: funcs, Hint: callHint}
}

// callHint is the advice for a call of a function that exists only as native code.
const callHint = "give the module that defines it too (a second --ir), say what it returns (--call NAME=VALUE), or resume a frame further out"

// Run runs the reference interpreter from the frames of a stack, over a copy-on-write view of the target's memory, until the function of the
// outermost frame returns. It writes nothing to the target. If a live value is missing in any frame, nothing runs and the error lists all missing
// values with their reasons.
func (v *View) Run(ctx context.Context, s *Stack, l Limits) (*frame.Resumed, error) {
	out, _, err := s.Run(ctx, l, 0)
	return out, err
}

// Ran is a finished run: its interpreter, with the memory that it stored to ([interp.Interp.Touched]), and the result.
type Ran struct {
	*Prepared
	Result *interp.Result
}

// Run does the same as [View.Run], and also returns the run. shift moves the interpreter's own memory by that many bytes, as in [interp.Options]. The
// report is set even if the run failed.
func (s *Stack) Run(ctx context.Context, l Limits, shift uint64) (*frame.Resumed, *Ran, error) {
	p, err := s.Prepare(l.Options(shift))
	if err != nil {
		return nil, nil, err
	}
	result, err := p.Machine.ResumeStack(ctx, p.Activations)
	out := &frame.Resumed{Schema: frame.ResumedSchema, Function: s.Frames[0].Function, Demangled: s.Frames[0].Demangled, TID: s.Thread.ID,
		Frame: s.Frames[0].Index, Resume: *s.Frames[0].Resume, Frames: p.frames, End: s.End}
	if result != nil {
		out.Steps, out.Output, out.Writes, out.ExitCode = result.Steps, result.Output, result.Writes, result.ExitCode
	}
	out.Floats = p.Floats()
	if err != nil {
		return out, nil, err
	}
	if result.ExitCode == nil && result.Type.Kind != ir.VoidKind {
		out.Result = &frame.Result{Type: result.Type.String(), Value: result.Value.Format()}
	}
	return out, &Ran{p, result}, nil
}

// callee returns the frame that the innermost frame of the stack called, or nil.
func (s *Stack) callee() *Frame {
	n := slices.Index(s.Thread.Frames, s.Frames[0])
	if n > 0 && s.Thread.Frames[n-1].Index == s.Frames[0].Index-1 { // the callee's frame may be missing from the view
		return s.Thread.Frames[n-1]
	}
	return nil
}

// Prepared is a stack that is ready to run: an interpreter over a copy-on-write view of the target, and the frames to resume.
type Prepared struct {
	Machine     *interp.Interp
	Activations []interp.Activation
	frames      []frame.ResumedFrame
	noFloats    string // why the floating-point environment of the thread is unknown, or ""
}

// Floats returns the floating-point environment of the machine. It returns nil if that is certainly the default, or if no code that ran so far
// depends on it.
func (p *Prepared) Floats() *frame.FloatEnvironment {
	text := p.Machine.FloatEnvironment()
	if !p.Machine.UsesFloats() || text == "" && p.noFloats == "" {
		return nil
	}
	return &frame.FloatEnvironment{Known: p.noFloats == "", Reason: p.noFloats, Text: cmp.Or(text, "default")}
}

// floats returns the floating-point control registers at the frame, or nil and the reason why they are unknown.
func (f *Frame) floats() (*machine.FloatControl, string) {
	c, err := f.physical.Registers.FloatControl()
	if err != nil {
		return nil, err.Error()
	}
	return &c, ""
}

// Prepare binds the values of all frames, and returns an error if one cannot resume. It sets the options that depend on the stack. If o has no
// Memory, it is the target's.
func (s *Stack) Prepare(o interp.Options) (*Prepared, error) {
	p := &Prepared{}
	var missing []string
	for k, f := range s.Frames {
		b, err := s.bind(k)
		if err != nil {
			return nil, err
		}
		if b.missing != nil {
			why, err := f.missing(b.activation.Point, b.missing)
			if err != nil {
				return nil, err
			}
			missing = append(missing, why)
		}
		p.Activations, p.frames = append(p.Activations, b.activation), append(p.frames, b.about)
	}
	if missing != nil {
		return nil, errors.New(strings.Join(missing, "\n"))
	}
	first := s.Frames[0]
	var err error
	o.Floats, p.noFloats = first.floats()
	p.Machine, err = first.view.machine(first.to.Module, s.symbols(), o)
	return p, err
}

// machine returns an interpreter of a module over the target. It sets the options that depend on the target. If o has no Memory, it is the target's.
func (v *View) machine(m *ir.Module, symbols func(*ir.Module, string) (machine.Addr, bool), o interp.Options) (*interp.Interp, error) {
	if o.Memory == nil {
		o.Memory = v.target
	}
	o.Arch, o.Modules, o.Symbol, o.SymbolAt = v.target.Arch(), v.beside(m), symbols, v.space.StartingAt
	return interp.New(m, o)
}

// Machine returns an interpreter for a function of the modules that is called in place of the frame's own. Names resolve as in the frame's code.
// Machine sets the options that depend on the target.
func (f *Frame) Machine(fn *ir.Func, o interp.Options) (*interp.Interp, error) {
	o.Floats, _ = f.floats()
	found := map[*ir.Module]func(string) (machine.Addr, bool){fn.Module: f.Symbols(fn)}
	return f.view.machine(fn.Module, f.view.symbolsOf(found), o)
}

// boundFrame is one frame of a stack with the values that it resumes with, and the names of the live values that it lacks.
type boundFrame struct {
	activation interp.Activation
	about      frame.ResumedFrame
	missing    []string
}

// bind returns frame k of the stack, ready to resume: the place, the values, and the pending call with the result that is known for it.
func (s *Stack) bind(k int) (b boundFrame, err error) {
	f := s.Frames[k]
	if err := f.refuseGuess(); err != nil && !s.Force {
		return b, err
	}
	a, err := f.activation()
	if err != nil {
		return b, err
	}
	b.about = frame.ResumedFrame{Frame: f.Index, Function: f.Function, Demangled: f.Demangled, Moment: f.Record.Moment, Resume: *f.Resume}
	switch {
	case k > 0:
		a.Call, _, _ = f.Awaited()
	case s.Returned != nil:
		if err := f.take(s.Returned, a.Values); err != nil {
			return b, err
		}
	case s.Result != "":
		if b.about.Given, err = f.give(s.Result, s.callee(), a.Values); err != nil {
			return b, err
		}
	}
	if err := f.enter(a.Point, a.Values); err != nil {
		return b, err
	}
	b.missing, err = a.Missing()
	b.activation = a
	return b, err
}

// beside returns the other modules whose code may run together with that of m: their data layouts must be equal.
func (v *View) beside(m *ir.Module) []*ir.Module {
	var others []*ir.Module
	for _, other := range v.modules.All {
		if other != m && other.Layout.Equal(m.Layout) {
			others = append(others, other)
		}
	}
	return others
}

// activation returns the place where the frame resumes, and its values there.
func (f *Frame) activation() (a interp.Activation, err error) {
	if f.mistake != nil {
		return a, f.mistake
	}
	if f.Resume == nil {
		return a, f.WhyNotResumed()
	}
	if f.to == nil {
		return a, fmt.Errorf("no module defines @%s, where %s resumes; give it with --ir", f.Resume.Function, f.Title())
	}
	if a.Point, err = f.point(f.to); err != nil {
		return a, err
	}
	a.Values, err = f.inputs(f.to.Module)
	if f.Resume.At != "" || f.Resume.After != "" { // the frame continues at its own site, where the values were recorded
		interp.Tell(a.Values)
	}
	return a, err
}

// WhyNotResumed returns an error that names what a frame with a record needs before it can resume.
func (f *Frame) WhyNotResumed() error {
	switch {
	case len(f.view.modules.All) == 0:
		return fmt.Errorf("%s: no IR module contains the site of record %d; give it with --ir", f.Title(), f.Record.ID)
	case f.match.Kind == ir.DeoptimizeSite:
		return fmt.Errorf("%s: a deoptimize never returns; --layout FILE.json says where the interpreter resumes%s", f.Title(), frame.Noted(f.Notes))
	}
	return fmt.Errorf("%s: no site of the given modules matches record %d%s", f.Title(), f.Record.ID, frame.Noted(f.Notes))
}

// Title returns a name of the frame for messages.
func (f *Frame) Title() string {
	name := f.Function
	if name == "" {
		name = string(f.PC)
	}
	return fmt.Sprintf("frame #%d, %s", f.Index, name)
}

// inputs converts the slots that have a value to values of the interpreter.
func (f *Frame) inputs(m *ir.Module) (map[ir.Value]interp.Value, error) {
	values := map[ir.Value]interp.Value{}
	for _, b := range f.values {
		s := &f.Slots[b.slot]
		if !s.Read() {
			continue
		}
		v, err := interp.FromBytes(m.Layout, b.value.Type(), s.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		values[b.value] = v
	}
	return values, nil
}

// missing lists the values that are live at p and that the frame lacks, with the reasons.
func (f *Frame) missing(p interp.Point, names []string) (string, error) {
	lines := []string{fmt.Sprintf("%s: @%s cannot resume in block %%%s: values that are live there are missing",
		f.Title(), p.Block.Func.Name, p.Block.Name)}
	for _, name := range names {
		why := "no slot holds it"
		for _, s := range f.Slots {
			if s.Name != name || s.Read() {
				continue
			}
			if why = s.Reason; s.CausedBy(frame.MemoryGone) { // the process has ended, and its memory is read on demand
				return "", &ptrace.Error{PID: f.view.target.PID, Op: "cannot read it", Err: ptrace.ErrProcessExited}
			}
		}
		if f.isResult(name) {
			why = "it is the result of a call that is still running; give it with --result"
			if f.Record.Moment == frame.After {
				why = "it is the result of the call, which no record contains; give it with --result"
			}
		}
		lines = append(lines, fmt.Sprintf("%s: %s", name, why))
	}
	return strings.Join(lines, "\n  "), nil
}

// Partial reports whether some value or frame is unavailable: a slot without a value or with a guess, a frame whose records cannot be read, a thread
// that could not be stopped, or a stack that was cut short.
func (v *View) Partial() bool {
	return progspace.Unopened(v.target) != "" || slices.ContainsFunc(v.Threads, func(t Thread) bool {
		return !t.End.Complete || slices.ContainsFunc(t.Frames, func(f *Frame) bool { return f.Lacks() != "" })
	})
}

// Lacks returns a value of the record that the frame lacks, with the reason; "" if the frame has all values. It also reports records that cannot
// be read. All values of a frame that is a guess count as missing.
func (f *Frame) Lacks() string {
	if f.Record != nil && f.Uncertain() != "" {
		return "a guess: " + f.Uncertain()
	}
	for _, s := range f.Slots {
		if s.Status == frame.Missing {
			return fmt.Sprintf("%s: unavailable: %s", s.Name, s.Reason)
		}
	}
	if why := f.VM.Lacks(); why != "" {
		return why
	}
	if f.match != nil && f.match.Refused != nil && !f.match.Refused.Func.Module.Found && f.Record != nil {
		return "names: " + f.match.Refused.Why
	}
	return f.unreadable
}

// Frames counts the frames of all threads.
func (v *View) Frames() int {
	n := 0
	for _, t := range v.Threads {
		n += len(t.Frames)
	}
	return n
}

// Records counts the frames that have a record.
func (v *View) Records() int {
	n := 0
	for _, t := range v.Threads {
		for _, f := range t.Frames {
			if f.Record != nil {
				n++
			}
		}
	}
	return n
}
