package unwind

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
)

// defaultMax is the default for the maximum number of frames of a walk.
const defaultMax = 512

// Unwinder walks the stacks of one stopped target. All fields are required but Max, Overwritten, Branches,
// MaxSearched, Patchable, Compiled, Conventions and Switches.
type Unwinder struct {
	Arch       *machine.Arch
	Memory     machine.Memory
	Finder     Finder
	Executable func(machine.Addr) bool // reports whether an address lies in executable memory
	Max        int                     // maximum number of frames; 0 means 512
	// Overwritten lists the places at which f may have left its function, if a runtime has overwritten code there. callee is the frame that f
	// called, or nil. Overwritten may be nil.
	Overwritten func(f, callee *Frame) []Overwritten
	// Branches lists the calls in all code of an arm64 target, and the jumps that leave their function. Each is given by the address after it, in
	// ascending order. Branches reads at most [SearchBytes] of code. missing is the reason why some code was not read, or nil. Branches may be
	// nil.
	Branches func() (list []machine.Addr, missing error)
	// MaxSearched is the maximum number of instructions that a walk examines to find callers on arm64 by elimination; 0 means 1 Mi.
	MaxSearched int
	// Patchable reports whether a runtime may have written a call that ended at an address, even if the call is no longer there. It may be nil.
	Patchable func(pc machine.Addr) bool
	// Compiled reads code as it was before a runtime overwrote it. It may be nil.
	Compiled func(p []byte, at machine.Addr) error
	// Conventions returns the calling convention of the function of callee, which f called. It returns nil if that is C's or unknown. It may be nil.
	Conventions func(callee, f *Frame) *Convention
	// Switches returns a function that finds the functions of Go's run time which switch stacks, for one walk that reads m. It may be nil.
	Switches func(m machine.Memory) SwitchFinder
}

// caller is the result of one step: the caller of a frame.
type caller struct {
	pc    machine.Addr
	regs  *machine.Registers
	rule  Rule
	guess string
	kind  string // [Frame.GuessKind]
	why   error  // guess as an error that holds its addresses; nil if guess has no addresses
}

// Walk walks a stack from the registers of its innermost frame. The result has at least that frame, unless its pc is unavailable.
//
// before, if not nil, is the stack of the same thread at an earlier moment, found by the same Unwinder with the same Finder. Its outer frames are
// reused if nothing that they depend on has changed.
func (u *Unwinder) Walk(regs *machine.Registers, before *Stack) *Stack {
	limit := u.Max
	if limit == 0 {
		limit = defaultMax
	}
	return newWalk(u).run(regs, before, limit)
}

// run walks a stack of at most limit frames.
func (w *walk) run(regs *machine.Registers, before *Stack, limit int) *Stack {
	u := w.Unwinder
	pc, err := regs.Addr(u.Arch.PC)
	if err != nil {
		return w.stack(*cutShort(frame.Because(frame.NoPC, err)), 0)
	}
	earlier := reuse{walk: w, before: before}
	next := caller{pc: pc, regs: regs, rule: FromRegisters}
	for {
		f := w.enter(next)
		if s := earlier.stack(); s != nil {
			return s
		}
		var end *End
		next, end = w.step(f)
		w.endFrame()
		if end != nil {
			if f.NoCFA != "" {
				f.NoCFA, f.noCFA = end.Reason, end.Why()
			}
			return w.stack(*end, len(w.frames))
		}
		w.compact()
		if w.found() >= limit {
			return w.stack(*cutShort(frame.Because(frame.FrameLimit, limit)), limit)
		}
	}
}

func (w *walk) stack(end End, found int) *Stack {
	return &Stack{Frames: w.frames, End: end, Found: found, Total: len(w.frames), reads: w.reads, until: w.until}
}

// enter adds the frame of c to the walk.
func (w *walk) enter(c caller) *Frame {
	var callee *Frame
	if n := len(w.frames); n > 0 {
		callee = &w.frames[n-1]
	}
	f := Frame{
		Index: w.found(), PC: c.pc, Registers: c.regs, Rule: c.rule, Guess: c.guess, GuessKind: c.kind, guess: c.why,
		Return: callee != nil && !callee.Signal,
		NoCFA:  "it was not unwound",
	}
	f.code = w.Finder.Code(f.lookup())
	w.overwritten(&f)
	f.Source = f.code.Source
	if f.Return {
		f.Skipped = w.skipped(callee, f.PC, f.code)
		w.returned(callee, &f)
		w.conventional(callee, &f)
	} else if w.Arch == machine.AMD64 {
		f.Popped = w.way(&f).popped
	}
	w.frames = append(w.frames, f)
	return &w.frames[len(w.frames)-1]
}

// step finds the caller of the innermost frame. If unwind information exists but cannot be used, it ends the walk: code with such information need
// not have a frame pointer.
func (w *walk) step(f *Frame) (caller, *End) {
	if s, err := w.switchAt(f); err != nil {
		return caller{}, cutShort(frame.Because(frame.StackSwitch, f.Index, frame.Errorf("it has switched stacks: %w", err)))
	} else if s != nil {
		return w.acrossStacks(f, s)
	}
	way := w.way(f)
	if way.err != nil {
		return caller{}, cutShort(frame.Because(frame.CFIUnusable, f.Index, way.err))
	}
	if s := way.cfi; s != nil {
		f.FDE, f.Signal = s.Range, s.signal
		if f.Overwritten == nil && w.lostLink(f, s.row) {
			c, ok, unsearched := w.byCall(f)
			switch {
			case ok:
				return c, nil
			case f.ambiguous:
				return caller{}, cutShort(frame.Because(frame.PatchUndecided, f.Index, undecidedPlaces))
			case unsearched != nil:
				if cfa, err := w.cfa(f.Registers, s.row.CFA); err == nil && cfa > w.floor {
					_ = w.setCFA(f, cfa) // the walk ends in any case
				}
				return caller{}, cutShort(frame.Because(frame.LinkUnsaved, f.Index, w.linkLost(f))).because(unsearched)
			}
			if cfa, err := w.cfa(f.Registers, s.row.CFA); err == nil && cfa == w.floor { // the frame is empty
				return caller{}, cutShort(frame.Because(frame.LinkUnsaved, f.Index, w.linkLost(f)))
			}
		}
		c, end, err := w.apply(f, s)
		if err != nil && f.NoCFA != "" && !s.signal {
			// The CFA needs a register whose value is unknown in f.
			if c, end, err := w.byScan(f, s.row); err == nil {
				return c, end
			}
		}
		if err != nil {
			return caller{}, cutShort(frame.Because(frame.CFIUnusable, f.Index, frame.Errorf("%s: %w", f.Source, err)))
		}
		return w.checkJumped(f, c, end)
	}
	c, end := w.withoutInformation(f, way)
	return w.checkJumped(f, c, end)
}

// checkJumped checks the caller c of f if a jump that was written into another function may have led to the code of f: the assumed return address
// may then be any word. It marks the caller as a guess or rejects it.
func (w *walk) checkJumped(f *Frame, c caller, end *End) (caller, *End) {
	switch {
	case !f.jumped || c.guess != "":
		return c, end
	case end != nil:
		return c, cutShort(frame.Because(frame.PatchUndecided, f.Index, "jumps that were written into functions lead to its code, and the stack does not show from which of them it came"))
	}
	switch how, _ := w.fits(c.pc, f); {
	case how == fitsWell && !f.contested:
	case how == fitsNot:
		return caller{}, cutShort(frame.Because(frame.PatchUndecided, f.Index, frame.Errorf("the call before %v, which would be its return address, is of another function", c.pc)))
	default:
		c.kind = "frame #%d is in code to which jumps lead that were written into functions, and may not have been called by this one"
		c.guess = fmt.Sprintf(c.kind, f.Index)
	}
	return c, nil
}

// errNoCode is the end of the reason for a frame at an address without code.
var errNoCode = errors.New(", and no code is there: it is not in executable memory")

// triedReason returns the end of the reason for a frame that all attempts failed to unwind. It does not unwrap them: their codes are not the code of the
// reason.
func triedReason(attempts []error) error {
	args := make([]any, len(attempts))
	for n, err := range attempts {
		args[n] = err
	}
	return frame.Errorf("; tried "+strings.Join(slices.Repeat([]string{"%v"}, len(args)), "; "), args...)
}

// withoutInformation finds the caller of a frame whose code has no unwind information. It uses the first method whose step passes the checks.
func (w *walk) withoutInformation(f *Frame, way *way) (caller, *End) {
	if !w.Executable(f.lookup()) {
		// After a jump to a wild address nothing has run here. The frame pointer is that of the jumping code, so following it would skip that code's
		// frame.
		return caller{}, cutShort(frame.Because(frame.NoUnwindInfo, f.Index, f.PC, errNoCode))
	}
	if w.startsProcess(f) {
		return caller{}, outermost(f.Index, "its process began in it")
	}
	tried := slices.Clone(way.tried)
	defer func() { f.tried = tried }()
	uncopied := false // an attempt failed at memory that was not copied
	failed := func(rule Rule, err error) {
		tried = append(tried, frame.Errorf("%s: %w", rule, err))
		var memory *machine.MemoryError
		uncopied = uncopied || errors.As(err, &memory) && memory.Code == frame.MemoryNotCopied
	}
	follow := func(certain bool) (caller, *End, bool) {
		for i := range way.other {
			s := &way.other[i]
			if (s.guess == "") != certain {
				continue
			}
			if s.rule == FromStackSize {
				s = w.linked(f, s)
			}
			c, end, err := w.prove(f, s)
			if err == nil {
				return c, end, true
			}
			failed(s.rule, err)
		}
		return caller{}, nil, false
	}
	if c, end, ok := follow(true); ok {
		return c, end
	}
	c, ok, unsearched := w.byCall(f)
	if ok {
		return c, nil
	}
	if c, end, err := w.byCallee(f); err == nil {
		return c, end
	}
	if c, end, err := w.byOwner(f); err == nil {
		return c, end
	}
	if to, returned := w.returnedByCode(f, way); returned {
		return caller{}, cutShort(frame.Because(frame.ReturnToNoCall, f.Index, "was entered by a return", to, ""))
	}
	if c, end, ok := follow(false); ok {
		return c, end
	}
	c, end, err := w.byChain(f)
	if err == nil {
		return c, end
	}
	failed(w.linkRule(), err)
	ends := errors.Is(err, errChainEnds)
	if c, end, err = w.byScan(f, nil); err == nil {
		return c, end
	}
	if ends {
		return caller{}, outermost(f.Index, fmt.Sprintf("its %s is zero, and nothing else leads further", w.linkRule()))
	}
	failed(FromScan, err)
	end = cutShort(frame.Because(frame.NoUnwindInfo, f.Index, f.PC, triedReason(tried)))
	if uncopied {
		end.Code = frame.MemoryNotCopied
	}
	if unsearched != nil {
		end = end.because(unsearched)
	}
	return caller{}, end
}
