package unwind

import (
	"errors"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// Finder finds the code of one target.
type Finder interface {
	// Code returns the code at an address: always the same value for the same code, and never nil.
	Code(pc machine.Addr) *Code
}

// Code is one image, or one piece of memory, that contains code, with the data for unwinding it. It caches results by address, so it must not outlive
// the code: an object that is loaded again needs a new Code. It is not safe for concurrent use.
type Code struct {
	Source string     // a path, "jit object N", or "" for unidentified memory
	Table  *cfi.Table // nil if there is no CFI
	Err    error      // why the unwind information cannot be used

	// NoneKept means that the functions follow a convention whose only callee-saved register is the frame pointer. Functions in .eh_frame follow C's
	// convention nevertheless.
	NoneKept bool

	// Start is the entry point of a process that runs this image; 0 if unknown.
	Start machine.Addr

	// Functions finds functions in code without CFI; it may be nil.
	Functions Functions

	ways  map[place]*way
	calls map[machine.Addr]machine.Addr // targets of calls, by the address after the call
	// takings caches the bytes that functions pop when they return, by their start.
	takings map[machine.Addr]taking
	read    map[machine.Addr]*codeRows // functions that were read, by start
	parts   map[machine.Addr]part      // parts of code that calls and jumps lead to, by start
	// called caches whether a call ends at an address.
	called map[machine.Addr]bool
}

// Functions finds functions and their frame sizes.
type Functions interface {
	// Function returns the start and the end of the function that contains pc. A zero start or end is unknown.
	Function(pc machine.Addr) (start, end machine.Addr)
	// Entry reports whether a function that can be called starts at addr. The start of a split-off part is not an entry.
	Entry(addr machine.Addr) bool
	// Linkage reports whether addr is in a procedure linkage table.
	Linkage(addr machine.Addr) bool
	// FrameSize returns the size of the frame of the function at pc, as in LLVM's stack maps: from the stack pointer at a call up to the return
	// address. It returns false if the size is unknown or not constant.
	FrameSize(pc machine.Addr) (bytes uint64, ok bool)
}

// place is the code address of a frame.
type place struct {
	pc       machine.Addr
	returned bool // pc is a return address
}

// place returns the place of the frame in its function.
func (f *Frame) place() place {
	if f.Overwritten != nil {
		return place{f.Overwritten.At, false}
	}
	return place{f.PC, f.Return}
}

// maxWays bounds each cache of a Code. The frames of a process share a few thousand addresses.
const maxWays = 1 << 16

// way holds the possible steps from a frame at one place to its caller, as far as the code alone gives them.
type way struct {
	cfi *step
	// popped is the number of bytes of arguments that the callee pops. If the place is not a return address but a call ends there, it is the number
	// that the callee has just popped.
	popped uint64
	err    error // error of CFI that cannot be used; then no other method is tried
	other  []step
	tried  []error // failed attempts other than CFI
}

// step leads from a frame to its caller: a row of rules, the method that made the row, and properties that show how far the caller is certain.
type step struct {
	row  *cfi.Row
	rule Rule
	// partial means that a register without a rule is unknown. Otherwise the calling convention decides whether such a register is callee-saved.
	partial bool
	// jumped means that the return address need not follow a call.
	jumped        bool
	signal        bool
	switched      bool         // the code has switched stacks, so the CFA may be anywhere
	guess         string       // [Frame.Guess] of the caller; %d stands for the number of the unwound frame
	noCallAt      machine.Addr // the second argument of guess, or 0
	kind          string       // [Frame.GuessKind] of the caller, or "" if it is guess
	late          uint64       // number of bytes by which the row's CFA is too high
	fde           *cfi.FDE     // the FDE of the row; nil for a row made here
	machine.Range              // code range of the row's FDE
	// unsaved holds callee-saved registers that this code changes and no row of the FDE restores.
	unsaved []machine.DWARFReg
}

// way returns the methods to unwind f. The result is cached.
func (u *codeReader) way(f *Frame) *way {
	at := f.place()
	if known := f.code.ways[at]; known != nil {
		return known
	}
	if f.code.ways == nil || len(f.code.ways) >= maxWays {
		f.code.ways = map[place]*way{}
	}
	way := u.findWay(f)
	f.code.ways[at] = way
	return way
}

func (u *codeReader) findWay(f *Frame) *way {
	if at := f.place(); f.Overwritten != nil {
		bare := *f
		bare.PC, bare.Return, bare.Overwritten = at.pc, at.returned, nil
		f = &bare
	}
	if f.code.Err != nil {
		return &way{err: frame.Errorf("unwind information of %v: %w", f.PC, f.code.Err)}
	}
	s, err := f.code.cfi(f.lookup())
	if s != nil && s.signal && u.Arch.Link == u.Arch.PC {
		// On other architectures the CFI of a trampoline has no rule for the saved pc, because the tables have no column for the pc.
		return &way{cfi: s}
	}
	// The FDE of adjacent code may cover the byte before a trampoline.
	if t := u.trampoline(f.PC); t != nil {
		return &way{cfi: t}
	}
	if s != nil || err != nil {
		found := &way{cfi: s, err: err}
		if s == nil {
			return found
		}
		s.unsaved = u.unsavedBy(s)
		if f.Return {
			found.popped = u.popped(f.code, s, f.PC)
		} else {
			found.popped = u.justPopped(f, s)
		}
		return found
	}
	return u.withoutCFI(f)
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
		return nil, frame.Errorf("%s: %w", c.Source, err)
	}
	row, err := fde.Rules(pc)
	if err != nil {
		return nil, frame.Errorf("%s: %w", c.Source, err)
	}
	return &step{row: row, rule: FromCFI, partial: c.NoneKept && fde.Debugging(),
		signal: fde.Signal, fde: fde, Range: fde.Range}, nil
}

// withoutCFI returns the methods to unwind from code without CFI, the most informative one first.
func (u *codeReader) withoutCFI(f *Frame) *way {
	var way way
	try := func(s *step, why error) bool {
		if s != nil {
			way.other = append(way.other, *s)
		} else if why != nil {
			way.tried = append(way.tried, why)
		}
		return s != nil
	}
	if !try(u.fromFunction(f)) {
		try(u.fromReturn(f))
	}
	try(u.fromStackSize(f), nil)
	return &way
}
