package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
)

// maxBack bounds the instructions that [Session.ReverseWrite] goes back one by one.
const maxBack = 20_000

// Write describes the last write of a slot.
type Write struct {
	Slot  frame.Slot
	Place string // the register, or the range of memory
	// Silent means that the write did not change the memory: the instruction wrote the value that was already there.
	Silent bool
}

// reversible returns the error for a target that cannot run backwards.
func (s *Session) reversible() error {
	switch {
	case s.process == nil:
		return fmt.Errorf("cannot run native code in %s", s.Still())
	case s.stop.Why == Ended:
		return errEndedProcess
	}
	return s.process.WhyForwardOnly()
}

// ReverseStep goes back by n machine instructions of the selected thread, at most to the start of the recording.
func (s *Session) ReverseStep(ctx context.Context, n uint64) (Stop, error) {
	if err := s.reversible(); err != nil {
		return s.stop, err
	}
	t, err := s.Thread()
	if err != nil {
		return s.stop, err
	}
	id := t.ID
	for range n {
		if err := s.process.StepBack(ctx, id); err != nil {
			return s.wentBack(ctx, id, err)
		}
	}
	return s.wentBack(ctx, id, nil)
}

// wentBack updates the session after the process has run backwards, and selects a thread. err is the error of that run.
func (s *Session) wentBack(ctx context.Context, thread int, err error) (Stop, error) {
	s.moved()
	s.thread, s.level = thread, 0
	switch {
	case err == nil:
		s.stop = Stop{Why: Reversed}
	case errors.Is(err, ptrace.ErrBegin):
		s.stop = Stop{Why: AtBegin}
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		s.stop = Stop{Why: Interrupted}
	default: // the process may have moved before the error
		s.stop = Stop{Why: Reversed}
		return s.stop, err
	}
	if _, err := s.View(); err != nil {
		return s.stop, err
	}
	if t, err := s.Thread(); err == nil && t.ID == thread { // View has selected a frame with a record
		s.level = 0
	} else if err := s.SetThread(thread); err == nil {
		s.level = 0
	}
	return s.stop, nil
}

// ReverseContinue runs the process backwards to the last exit with a breakpoint, or to the start of the recording.
func (s *Session) ReverseContinue(ctx context.Context) (Stop, error) {
	if err := s.reversible(); err != nil {
		return s.stop, err
	}
	if err := s.process.Backwards(true); err != nil {
		return s.stop, err
	}
	thread := s.thread
	stop, err := s.Continue(ctx)
	if off := s.process.Backwards(false); off != nil {
		return stop, errors.Join(err, off)
	}
	if err != nil {
		return s.wentBack(ctx, thread, err)
	}
	return stop, nil
}

// activation identifies an activation of a function.
type activation struct {
	thread int
	cfa    machine.Addr
	entry  machine.Addr
	title  string
}

// activationOf returns the activation of a physical frame. Its place must be certain.
func (s *Session) activationOf(f *deopt.Frame) (a activation, err error) {
	physical := f.Physical()
	switch {
	case f.Uncertain() != "":
		return a, fmt.Errorf("%s: the frame is a guess, so its entry is unknown: %s", f.Title(), f.Uncertain())
	case physical.NoCFA != "":
		return a, fmt.Errorf("%s: its CFA is unknown: %s", f.Title(), physical.NoCFA)
	case f.Offset == nil:
		return a, fmt.Errorf("%s: the start of its function is unknown", f.Title())
	}
	return activation{s.thread, physical.CFA, physical.PC - machine.Addr(*f.Offset), f.Title()}, nil
}

// entered reports whether a thread is about to run the first instruction of the activation.
func (a activation) entered(t machine.Thread) bool {
	if t.ID != a.thread || t.Registers == nil {
		return false
	}
	arch := t.Registers.Arch()
	pc, err := t.Registers.Addr(arch.PC)
	sp, missing := t.Registers.Addr(arch.SP)
	before := a.cfa + machine.Addr(arch.CallerSP) // the stack pointer before the call
	if arch == machine.AMD64 {
		before -= 8 // the call pushes the return address
	}
	return err == nil && missing == nil && pc == a.entry && sp == before
}

// selected returns the selected physical frame and its activation.
func (s *Session) selected() (*deopt.Frame, activation, error) {
	at, err := s.Level()
	if err != nil {
		return nil, activation{}, err
	}
	if at.Physical == nil {
		return nil, activation{}, errors.New("the interpreter runs: leave returns to the physical frames")
	}
	a, err := s.activationOf(at.Physical)
	return at.Physical, a, err
}

// ReverseEntry goes back to the entry of the selected frame's activation, before its first instruction. It passes the entries of other activations of
// the function.
func (s *Session) ReverseEntry(ctx context.Context) (Stop, error) {
	if err := s.reversible(); err != nil {
		return s.stop, err
	}
	f, a, err := s.selected()
	if err != nil {
		return s.stop, err
	}
	if f.Index == 0 && *f.Offset == 0 {
		return s.stop, fmt.Errorf("%s: it is at the entry of its activation", a.title)
	}
	stop, err := s.wentBack(ctx, a.thread, s.backToEntry(ctx, a))
	if err == nil && stop.Why == Reversed {
		s.stop.Why = AtEntry
	}
	return s.stop, err
}

// backToEntry runs the process backwards to the entry of an activation.
func (s *Session) backToEntry(ctx context.Context, a activation) error {
	for {
		stop, err := s.process.RunBack(ctx, machine.Range{}, a.entry)
		if err != nil || a.entered(stop.Thread) {
			return err
		}
	}
}

// ReverseWrite goes back to the last write of a slot of the selected frame. The process stops before the instruction that writes. If the activation
// has not written the slot, the process stops at the entry of the activation ([AtEntry]). Single steps find writes of a register, but only those that
// change it. progress is called now and then with the number of steps.
func (s *Session) ReverseWrite(ctx context.Context, name string, progress func(steps int)) (Stop, *Write, error) {
	if err := s.reversible(); err != nil {
		return s.stop, nil, err
	}
	f, a, err := s.selected()
	if err != nil {
		return s.stop, nil, err
	}
	is, err := slotOf(f, name)
	if err != nil {
		return s.stop, nil, err
	}
	w := &Write{Slot: *is}
	l := is.Location
	var reg machine.DWARFReg
	if l != nil && l.DWARF != nil {
		reg = machine.DWARFReg(*l.DWARF)
	}
	entry := f.Index == 0 && *f.Offset == 0
	var why Reason
	switch {
	case l == nil:
		return s.stop, nil, fmt.Errorf("%s has no place of its own; name the slot of the record that it is read from", name)
	case entry:
		return s.stop, nil, fmt.Errorf("%s: it is at the entry of its activation, where nothing is written yet", a.title)
	case l.Kind == "Register":
		w.Place = l.Register
		why, err = s.backToRegister(ctx, f, a, reg, progress)
	case l.Kind == "Indirect" || l.Kind == "Direct":
		var r machine.Range
		if r, err = written(f, is, reg); err != nil {
			return s.stop, nil, fmt.Errorf("%s: %w", name, err)
		}
		w.Place = fmt.Sprintf("%d bytes at %v", r.End-r.Start, r.Start)
		why, err = s.backToMemory(ctx, &a, r, w, progress)
	default:
		return s.stop, nil, fmt.Errorf("%s is a constant of the record: no instruction writes it", name)
	}
	stop, err := s.wentBack(ctx, a.thread, err)
	if err == nil && stop.Why == Reversed {
		s.stop.Why = why
	}
	return s.stop, w, err
}

// written returns the memory that holds the value of a slot. If the value is the address of a variable, it returns the memory of the variable.
func written(f *deopt.Frame, is *frame.Slot, reg machine.DWARFReg) (r machine.Range, err error) {
	base, err := f.Physical().Registers.Addr(reg)
	if err != nil {
		return r, err
	}
	start, size := base+machine.Addr(is.Location.Offset), is.Location.Size
	if is.Location.Kind == "Direct" {
		for _, v := range f.Holds(is.Index) {
			if i, ok := v.(*ir.Instr); ok && i.Elem != nil && len(i.Args) == 0 {
				size = interp.FrameType(i.Block.Func.Module.Layout, i.Elem).Size()
			}
		}
	}
	if size <= 0 || size > ptrace.MaxRead {
		return r, fmt.Errorf("it has %d bytes: expected 1 to %d", size, ptrace.MaxRead)
	}
	return machine.Range{Start: start, End: start + machine.Addr(size)}, nil
}

// backToMemory goes back to the last write of memory, by the stub's watchpoints or else by single steps. It sets a.thread to the thread that writes.
func (s *Session) backToMemory(ctx context.Context, a *activation, r machine.Range, w *Write, progress func(int)) (Reason, error) {
	for {
		stop, err := s.process.RunBack(ctx, r, a.entry)
		switch {
		case errors.Is(err, ptrace.ErrLacks):
			return s.stepToMemory(ctx, *a, r, err, progress)
		case err != nil:
			return 0, err
		case stop.Written:
			a.thread, w.Silent = stop.Thread.ID, !stop.Changed
			return AtWrite, nil
		case a.entered(stop.Thread):
			return AtEntry, nil
		}
	}
}

// stepToMemory is backToMemory by single steps of the activation's thread, for a stub that cannot watch the memory; lacks is its error. It finds only
// writes that change the memory. It requires a single thread: other threads may run during a step back.
func (s *Session) stepToMemory(ctx context.Context, a activation, r machine.Range, lacks error, progress func(int)) (Reason, error) {
	var last []byte
	for n := 0; n < maxBack; n++ {
		t, err := s.process.Target()
		if err != nil {
			return 0, err
		}
		if threads := len(t.Threads()); threads > 1 {
			return 0, fmt.Errorf("%w; single steps cannot find the write, because any of the %d threads may write", lacks, threads)
		}
		now := make([]byte, r.End-r.Start)
		if err := t.ReadMemory(now, r.Start); err != nil {
			return 0, err
		}
		switch {
		case last != nil && !bytes.Equal(now, last):
			return AtWrite, nil
		case slices.ContainsFunc(t.Threads(), a.entered):
			return AtEntry, nil
		}
		last = now
		if err := s.process.StepBack(ctx, a.thread); err != nil {
			return 0, err
		}
		report(progress, n)
	}
	return 0, errFar
}

var errFar = fmt.Errorf("no write was found in the %d instructions before; the process is stopped there", maxBack)

// report calls progress with n, the number of steps, after every 500 steps.
func report(progress func(int), n int) {
	const every = 500
	if n > 0 && n%every == 0 && progress != nil {
		progress(n)
	}
}

// backToRegister goes back to the last instruction of a frame's activation that has changed a register. It steps over a call as over one instruction,
// because a callee may save a register and restore it.
func (s *Session) backToRegister(ctx context.Context, f *deopt.Frame, a activation, reg machine.DWARFReg, progress func(int)) (Reason, error) {
	last, err := f.Physical().Registers.Bytes(reg)
	if err != nil {
		return 0, err
	}
	last = slices.Clone(last)
	for n := 0; n < maxBack; n++ {
		if n > 0 || f.Index == 0 {
			if err := s.process.StepBack(ctx, a.thread); err != nil {
				return 0, err
			}
		}
		now, err := s.innermost(ctx, a)
		if err != nil {
			return 0, err
		}
		b, err := now.Bytes(reg)
		if err != nil {
			return 0, err
		}
		pc, err := now.Addr(now.Arch().PC)
		switch {
		case err != nil:
			return 0, err
		case !bytes.Equal(b, last):
			return AtWrite, nil
		case pc == a.entry:
			return AtEntry, nil
		}
		report(progress, n)
	}
	return 0, errFar
}

// innermost goes back until no function that the activation has called is running, and returns the activation's registers at that moment.
func (s *Session) innermost(ctx context.Context, a activation) (*machine.Registers, error) {
	const most = 64 // a call may leave several frames, for example of stubs
	for range most {
		s.moved()
		s.thread = a.thread
		v, err := s.View()
		if err != nil {
			return nil, err
		}
		k := slices.IndexFunc(v.Threads, func(t deopt.Thread) bool { return t.ID == a.thread })
		if k < 0 {
			return nil, deopt.NoThread(v.Target(), a.thread)
		}
		frames := v.Threads[k].Frames
		own := slices.IndexFunc(frames, func(f *deopt.Frame) bool {
			p := f.Physical()
			return p.NoCFA == "" && p.CFA == a.cfa && f.Offset != nil && p.PC-machine.Addr(*f.Offset) == a.entry
		})
		switch {
		case own < 0:
			return nil, fmt.Errorf("%s: its activation is not found in the stack at the instruction before; the process is stopped there", a.title)
		case own == 0:
			for _, t := range v.Target().Threads() {
				if t.ID == a.thread && t.Registers != nil {
					return t.Registers, nil
				}
			}
			return nil, errors.New("its registers cannot be read")
		}
		s.thread = a.thread
		callee, err := s.activationOf(frames[own-1])
		if err != nil {
			return nil, err
		}
		if pc := frames[own-1].Physical().PC; own > 1 || pc != callee.entry {
			if err := s.backToEntry(ctx, callee); err != nil {
				return nil, err
			}
		}
		if err := s.process.StepBack(ctx, a.thread); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s: the call that it waits for was not found; the process is stopped before it", a.title)
}
