package unwind

import (
	"errors"

	"reframe/deopt/machine"
)

// defaultMax is how many frames a walk has at most when nothing else is asked for.
const defaultMax = 512

// Finder knows which image has the code at an address.
type Finder interface {
	// Table returns the unwind information of the image that pc lies in, and
	// what it came from: a path, or "jit object N". A nil table says that
	// there is none, and that the code has to be unwound without.
	Table(pc machine.Addr) (*Table, string, error)
}

// Unwinder walks the stacks of one stopped target. All fields but Max are needed.
type Unwinder struct {
	Arch       *machine.Arch
	Memory     machine.Memory
	Finder     Finder
	Executable func(machine.Addr) bool // an address lies in executable memory
	Max        int                     // frames; 0 stands for 512
}

// caller is what one step finds out about the frame above.
type caller struct {
	pc    machine.Addr
	regs  *machine.Registers
	rule  Rule
	guess string
}

// walk is one stack as far as it is known.
type walk struct {
	*Unwinder
	frames  []Frame
	signals map[machine.Addr]bool // CFAs of the signal frames that were passed
}

// Unwind walks a stack from the registers of its innermost frame. There is at
// least that frame, unless its pc itself is unavailable.
func (u *Unwinder) Unwind(regs *machine.Registers) ([]Frame, End) {
	pc, err := regs.Addr(u.Arch.PC)
	if err != nil {
		return nil, *cutShort("frame #0 has no pc: %v", err)
	}
	limit := u.Max
	if limit == 0 {
		limit = defaultMax
	}
	w := walk{Unwinder: u, signals: map[machine.Addr]bool{}}
	next := caller{pc: pc, regs: regs, rule: FromRegisters}
	for {
		frame := w.enter(next)
		var end *End
		if next, end = w.step(frame); end != nil {
			if frame.NoCFA != "" {
				frame.NoCFA = end.Reason
			}
			return w.frames, *end
		}
		if len(w.frames) >= limit {
			return w.frames, *cutShort("there are more than %d frames", limit)
		}
	}
}

// enter adds a frame.
func (w *walk) enter(c caller) *Frame {
	index := len(w.frames)
	w.frames = append(w.frames, Frame{
		Index: index, PC: c.pc, Registers: c.regs, Rule: c.rule, Guess: c.guess,
		Return: index > 0 && !w.frames[index-1].Signal,
		NoCFA:  "it was not unwound",
	})
	return &w.frames[index]
}

// step finds the caller of the innermost frame that is not left yet: by CFI
// where its image has some for it, else by its frame pointer. Unwind
// information that is there but cannot be used ends the walk: code that has it
// need not keep a frame pointer.
func (w *walk) step(f *Frame) (caller, *End) {
	table, source, err := w.Finder.Table(f.lookup())
	if err != nil {
		return caller{}, cutShort("frame #%d: unwind information of %v: %v", f.Index, f.PC, err)
	}
	if table == nil {
		return w.byFramePointer(f)
	}
	fde, err := table.Find(f.lookup())
	if errors.Is(err, ErrNoFDE) {
		return w.byFramePointer(f)
	}
	if err != nil {
		return caller{}, cutShort("frame #%d: %s: %v", f.Index, source, err)
	}
	f.Source, f.FDEStart, f.FDEEnd, f.Signal = source, fde.Start, fde.End, fde.Signal
	return w.byCFI(f, fde)
}

// settle gives f its CFA, when that is possible where it lies. Stacks grow
// down and every call pushes a return address, so a caller's CFA lies above
// its callee's. Only a signal may be handled on another stack.
func (w *walk) settle(f *Frame, cfa machine.Addr) *End {
	if f.Index > 0 {
		below := &w.frames[f.Index-1]
		if !f.Signal && !below.Signal && cfa <= below.CFA {
			return cutShort("frame #%d: its CFA %v is not above that of frame #%d, %v", f.Index, cfa, below.Index, below.CFA)
		}
	}
	if f.Signal {
		if w.signals[cfa] {
			return cutShort("frame #%d: a signal frame with CFA %v for the second time: a loop", f.Index, cfa)
		}
		w.signals[cfa] = true
	}
	f.CFA, f.NoCFA = cfa, ""
	return nil
}
