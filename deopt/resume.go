package deopt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"reframe/deopt/frame"
	"reframe/deopt/interp"
	"reframe/deopt/ir"
	"reframe/deopt/machine"
	"reframe/deopt/object"
	"reframe/ptrace"
)

// ErrNoFrame is wrapped where no frame can be resumed.
var ErrNoFrame = errors.New("no frame to resume")

// Choice says which frame is meant. Its zero value is the innermost frame with a
// record, of the first thread that has one.
type Choice struct {
	Frame    int    // its number, or -1
	Function string // its function's name, or ""
}

// Pick returns the frame that is meant. The thread was chosen by [Options.Thread].
func (v *View) Pick(c Choice) (*Thread, *Frame, error) {
	for i := range v.Threads {
		t := &v.Threads[i]
		for _, f := range t.Frames {
			byNumber := c.Frame < 0 || c.Frame == f.Index
			byName := c.Function == "" || c.Function == f.Function
			if byNumber && byName && f.Record != nil {
				return t, f, nil
			}
			if c.Frame >= 0 && byNumber && byName {
				return nil, nil, fmt.Errorf("%w: frame %d of thread %d (%s) has no stack map record%s",
					ErrNoFrame, f.Index, t.ID, f.Title(), noted(f.Notes))
			}
		}
	}
	switch {
	case c.Frame >= 0:
		return nil, nil, fmt.Errorf("%w: there is no frame %d", ErrNoFrame, c.Frame)
	case c.Function != "":
		return nil, nil, fmt.Errorf("%w: no frame of %s has a stack map record", ErrNoFrame, c.Function)
	}
	return nil, nil, fmt.Errorf("%w: no frame has a stack map record", ErrNoFrame)
}

func noted(notes []string) string {
	if len(notes) == 0 {
		return ""
	}
	return ": " + strings.Join(notes, "; ")
}

// Limits of a run in the interpreter; zero values are the interpreter's own.
type Limits struct {
	Steps  uint64
	Memory uint64
}

// Run lets the reference interpreter carry on from the frame, over a copy-on-write
// view of the target's memory, until the function returns. Nothing is written to the
// target. Where a value is missing that is live there, nothing runs and the error names
// all of them with their reasons.
func (v *View) Run(ctx context.Context, t *Thread, f *Frame, l Limits) (*frame.Resumed, error) {
	if f.Resume == nil {
		return nil, f.whyNot()
	}
	fn := f.to
	if fn == nil {
		return nil, fmt.Errorf("no module defines @%s, where %s carries on; give it with --ir", f.Resume.Function, f.Title())
	}
	point, err := f.point(fn)
	if err != nil {
		return nil, err
	}
	values, err := f.inputs(fn.Module)
	if err != nil {
		return nil, err
	}
	if err := f.enter(point, values); err != nil {
		return nil, err
	}
	machine, err := interp.New(fn.Module, interp.Options{Memory: v.target, Arch: v.target.Arch(),
		Symbol: f.symbol(fn), SymbolAt: v.symbolAt, MaxSteps: l.Steps, MaxMemory: l.Memory})
	if err != nil {
		return nil, err
	}
	result, err := machine.Resume(ctx, point, values)
	var missing *interp.MissingError
	if errors.As(err, &missing) {
		return nil, f.missing(missing)
	}
	out := &frame.Resumed{Schema: frame.ResumedSchema, Function: f.Function, TID: t.ID, Frame: f.Index, Resume: *f.Resume}
	if result != nil {
		out.Steps, out.Output, out.Writes, out.ExitCode = result.Steps, result.Output, result.Writes, result.ExitCode
	}
	if err != nil {
		return out, err
	}
	if result.ExitCode == nil && result.Type.Kind != ir.VoidKind {
		out.Result = &frame.Result{Type: result.Type.String(), Value: result.Value.Format()}
	}
	return out, nil
}

// whyNot says what is missing to resume a frame that has a record.
func (f *Frame) whyNot() error {
	switch {
	case len(f.view.modules.all) == 0:
		return fmt.Errorf("%s: no IR module says what record %d means; give it with --ir", f.Title(), f.Record.ID)
	case f.match.kind == ir.DeoptimizeSite:
		return fmt.Errorf("%s never returns to its own code from a deoptimize; give a layout that says where it carries on with --layout%s", f.Title(), noted(f.Notes))
	}
	return fmt.Errorf("%s: no site of the given modules is that of record %d%s", f.Title(), f.Record.ID, noted(f.Notes))
}

// Title names a frame for messages.
func (f *Frame) Title() string {
	name := f.Function
	if name == "" {
		name = string(f.PC)
	}
	return fmt.Sprintf("frame #%d, %s", f.Index, name)
}

// inputs makes the interpreter's values of the slots that have one.
func (f *Frame) inputs(m *ir.Module) (map[ir.Value]interp.Value, error) {
	values := map[ir.Value]interp.Value{}
	for _, b := range f.values {
		s := &f.Slots[b.slot]
		if s.Status != frame.OK {
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

// missing says of each value that the interpreter needs and does not have why that is.
func (f *Frame) missing(m *interp.MissingError) error {
	lines := []string{fmt.Sprintf("@%s cannot carry on in block %%%s: values that are live there are missing", m.Func, m.Block)}
	for _, name := range m.Names {
		why := "no slot holds it"
		for _, s := range f.Slots {
			if s.Name == name && s.Status != frame.OK {
				why = s.Reason
			}
		}
		if strings.HasSuffix(why, syscall.ESRCH.Error()) { // of a held process memory is read as it is touched
			return &ptrace.Error{PID: f.view.target.PID, Op: "cannot read it", Err: ptrace.ErrGone}
		}
		if f.isResult(name) {
			why = "it is what the call returns, and the call is still running"
			if f.Record.Moment == frame.After {
				why = "it is what the call returned, and no record holds it"
			}
		}
		lines = append(lines, fmt.Sprintf("%s: %s", name, why))
	}
	return errors.New(strings.Join(lines, "\n  "))
}

// symbol binds the names of fn's module to addresses of the target. A name that the
// module keeps to itself is looked for in the image that was made of it alone: another
// one may use the same name for something else.
func (f *Frame) symbol(fn *ir.Func) func(string) (machine.Addr, bool) {
	m, img := fn.Module, f.imageOf(fn)
	return func(name string) (machine.Addr, bool) {
		linkage := ""
		switch g := m.Lookup(name).(type) {
		case *ir.Global:
			linkage = g.Linkage
		case *ir.Func:
			linkage = g.Linkage
		}
		// A private symbol is not written into the object.
		if linkage == "private" {
			return 0, false
		}
		if img != nil && linkage != "internal" {
			if sym, ok := img.Exported(name); ok {
				return sym.Addr, true
			}
		}
		// What a linker hid is local too.
		if img != nil {
			if sym, ok := img.Only(name); ok {
				return sym.Addr, true
			}
		}
		if linkage == "internal" {
			return 0, false
		}
		sym, ok := f.view.target.FindSymbol(name)
		return sym.Addr, ok
	}
}

// imageOf returns the image that a function's module was compiled into, or nil where it
// is not known: the frame's own, where its site is in that module or the image has the
// function, else the one that exports the function.
func (f *Frame) imageOf(fn *ir.Func) *object.Image {
	own := f.code.image
	if own != nil {
		if f.match != nil && f.match.site != nil && f.match.site.Func.Module == fn.Module {
			return own
		}
		if _, ok := own.Lookup(fn.Name); ok {
			return own
		}
	}
	if sym, ok := f.view.target.FindSymbol(fn.Name); ok {
		if c := f.view.space.at(sym.Addr); c != nil {
			return c.image
		}
	}
	return nil
}

// symbolAt names the function that starts at addr.
func (v *View) symbolAt(addr machine.Addr) (string, bool) {
	c := v.space.at(addr)
	if c == nil {
		return "", false
	}
	name, start, ok := c.function(addr)
	return name, ok && start == addr && name != ""
}

// Partial says whether some value or frame could not be had: a slot without a value,
// a thread that could not be stopped, a stack that was cut short.
func (v *View) Partial() bool {
	return slices.ContainsFunc(v.Threads, func(t Thread) bool {
		return !t.End.Complete || slices.ContainsFunc(t.Frames, func(f *Frame) bool {
			return slices.ContainsFunc(f.Slots, func(s frame.Slot) bool { return s.Status == frame.Missing })
		})
	})
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
