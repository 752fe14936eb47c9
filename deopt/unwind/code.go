package unwind

import (
	"errors"
	"fmt"

	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// Finder knows the code of one target.
type Finder interface {
	// Code returns what is known of the code at an address: always the same value for the same code. It is never nil.
	Code(pc machine.Addr) *Code
}

// Code is one image, or one piece of memory, that holds code, with the data for unwinding it. It caches the results for addresses, so it must not
// outlive the code: an object that is loaded again needs a new Code. Not safe for concurrent use.
type Code struct {
	Source string     // a path, "jit object N", or "" for unidentified memory
	Table  *cfi.Table // nil if there is no CFI
	Err    error      // why existing unwind information cannot be used

	// NoneKept means that the functions follow a convention without callee-saved registers other than the frame pointer. Functions in .eh_frame
	// follow C's convention all the same.
	NoneKept bool

	// Start is the entry point of a process that runs this image; 0 if unknown.
	Start machine.Addr

	// Functions knows the functions of code that has no CFI; it may be nil.
	Functions Functions

	ways  map[place]*way
	calls map[machine.Addr]machine.Addr // targets of calls, by the address after the call
	// takings caches the bytes that functions pop off the stack when they return, by their start.
	takings map[machine.Addr]taking
	read    map[machine.Addr]*codeRows // functions that were read, by their start
	parts   map[machine.Addr]part      // parts of code that calls and jumps lead to, by their start
	// called caches whether a call ends at an address.
	called map[machine.Addr]bool
}

// Functions knows where functions lie, and how much stack they take.
type Functions interface {
	// Function returns the start of the function that pc lies in, and the first address past it. A zero start means that the start is unknown, a
	// zero end that the end is.
	Function(pc machine.Addr) (start, end machine.Addr)
	// Entry reports whether a function that can be called starts at addr; a part of another function is not one.
	Entry(addr machine.Addr) bool
	// FrameSize returns the size of the frame of the function at pc as LLVM's stack maps
	// count it: from the stack pointer, where the function calls another, up to the
	// return address. False where it is not known, or not constant.
	FrameSize(pc machine.Addr) (bytes uint64, ok bool)
}

// place is an address of code, as the pc of a frame.
type place struct {
	pc machine.Addr
	is bool // a return address
}

// place returns the place of the frame in its function.
func (f *Frame) place() place {
	if f.Overwritten != nil {
		return place{f.Overwritten.At, false}
	}
	return place{f.PC, f.Return}
}

// maxWays bounds what a Code keeps. The frames of a process share a few thousand addresses.
const maxWays = 1 << 16

// way is all that can be worked out, from the code alone, about leaving a frame at one place.
type way struct {
	cfi *step
	// popped is how many bytes of arguments the callee pops off the stack, or has just popped if the place is no return address and its call ends
	// there.
	popped uint64
	err    error // existing CFI cannot be used; nothing else is tried then
	other  []step
	why    []string // what was tried instead of CFI and gave nothing
}

// step is one way to the caller.
type step struct {
	row  *cfi.Row
	rule Rule
	// partial means that a register which the row does not mention is unknown. Without it, the calling convention decides whether such a register
	// is callee-saved.
	partial bool
	// jumped is set if the return address need not come after a call.
	jumped        bool
	signal        bool
	switched      bool     // the code has moved to another stack, so the CFA may lie anywhere
	guess         string   // [Frame.Guess] of the caller, in which %d is the number of the frame that is unwound
	late          uint64   // how many bytes the stack pointer is further up than the row takes it to be
	fde           *cfi.FDE // that has the row, nil of one that was made
	machine.Range          // the code that the row's FDE covers
	// unsaved are registers that its caller relies on, which this code changes and no row of the FDE restores.
	unsaved []machine.DWARFReg
}

// way returns what is known about leaving f.
func (w *walk) way(f *Frame) *way {
	at := f.place()
	if known := f.code.ways[at]; known != nil {
		return known
	}
	if f.code.ways == nil || len(f.code.ways) >= maxWays {
		f.code.ways = map[place]*way{}
	}
	way := w.findWay(f)
	f.code.ways[at] = way
	return way
}

func (w *walk) findWay(f *Frame) *way {
	if at := f.place(); f.Overwritten != nil {
		there := *f
		there.PC, there.Return, there.Overwritten = at.pc, at.is, nil
		f = &there
	}
	if f.code.Err != nil {
		return &way{err: fmt.Errorf("unwind information of %v: %w", f.PC, f.code.Err)}
	}
	s, err := f.code.cfi(f.lookup())
	if s != nil && s.signal && w.Arch.Link == w.Arch.PC {
		// On other architectures such CFI has no rule for the saved pc, for which tables have no column.
		return &way{cfi: s}
	}
	// Such code may lie where the FDE of adjacent code covers the byte before it.
	if t := w.trampoline(f.PC); t != nil {
		return &way{cfi: t}
	}
	if s != nil || err != nil {
		found := &way{cfi: s, err: err}
		if s == nil {
			return found
		}
		s.unsaved = w.unsavedBy(s)
		if f.Return {
			found.popped = w.popped(f.code, s, f.PC)
		} else {
			found.popped = w.justPopped(f, s)
		}
		return found
	}
	return w.withoutCFI(f)
}

// cfi returns the step that CFI describes at an address, or nil if no FDE covers it.
func (c *Code) cfi(pc machine.Addr) (*step, error) {
	if c.Table == nil {
		return nil, nil
	}
	fde, err := c.Table.Find(pc)
	if errors.Is(err, cfi.ErrNoFDE) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Source, err)
	}
	row, err := fde.Rules(pc)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Source, err)
	}
	return &step{row: row, rule: FromCFI, partial: c.NoneKept && fde.Debugging(),
		signal: fde.Signal, fde: fde, Range: fde.Range}, nil
}

// withoutCFI returns the ways to unwind from code without CFI, the most informative one first.
func (w *walk) withoutCFI(f *Frame) *way {
	var way way
	try := func(s *step, why string) bool {
		if s != nil {
			way.other = append(way.other, *s)
		} else if why != "" {
			way.why = append(way.why, why)
		}
		return s != nil
	}
	if !try(w.fromFunction(f)) {
		try(w.fromReturn(f))
	}
	try(w.fromStackSize(f), "")
	return &way
}
