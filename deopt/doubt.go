package deopt

import (
	"fmt"
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind"
)

// doubt is the reason why a frame may not exist: the innermost guess in its stack, by which this frame or an inner one was found. All frames further
// out get their stack pointers and registers from the guessed frame, so none of their values is certain.
type doubt struct {
	index int   // index of the frame that was found by the guess
	why   error // its [unwind.Frame.WhyGuess]
}

// doubtOf returns the doubt of a frame; within is its callee.
func doubtOf(p *unwind.Frame, within *Frame) *doubt {
	switch {
	case within != nil && within.guess != nil:
		return within.guess
	case p.Guess != "":
		return &doubt{p.Index, p.WhyGuess()}
	}
	return nil
}

// Uncertain returns the reason why the frame may not exist or may belong to another function, or "" if the frame is certain. Reasons are: the frame
// or an inner one was found by a guess; the linker folded the frame's function with others.
func (f *Frame) Uncertain() string {
	if why := f.WhyUncertain(); why != nil {
		return why.Error()
	}
	return ""
}

// WhyUncertain is [Frame.Uncertain] as an error in which [frame.TextWith] can replace the addresses; nil if the frame is certain.
func (f *Frame) WhyUncertain() error {
	switch d := f.guess; {
	case d == nil:
		return f.folded()
	case d.index == f.Index:
		return frame.Because(frame.GuessedFrame, d.why)
	default:
		return frame.Because(frame.GuessedFrame, frame.Errorf("it lies beyond frame #%d, which was found by a guess: %w", d.index, d.why))
	}
}

// doubtSlots marks the values of an uncertain frame as guessed.
func (f *Frame) doubtSlots() {
	why := f.WhyUncertain()
	if why == nil {
		return
	}
	if f.guess != nil {
		why = frame.Errorf("frame #%d is a guess: %w", f.Index, why)
	}
	for i := range f.Slots {
		if s := &f.Slots[i]; s.Status == frame.OK {
			s.Doubt(why)
		}
	}
}

// refuseGuess returns an error if the frame is uncertain.
func (f *Frame) refuseGuess() error {
	if f.Uncertain() == "" {
		return nil
	}
	return fmt.Errorf("%s, is a guess: %s; see explain -f %d for how it was found, or resume it anyway with --force", f.Title(), f.Uncertain(), f.Index)
}

// folded returns a reason if the linker folded several functions into the code that the frame's record belongs to, or nil.
func (f *Frame) folded() error {
	if f.match == nil || f.code == nil {
		return nil
	}
	names, folded := f.code.Folded(f.match.Entry.Function.Addr)
	if !folded {
		return nil
	}
	which := ""
	if len(names) > 1 {
		const shown = 4
		which = ": " + strings.Join(names[:min(len(names), shown)], ", ")
		if len(names) > shown {
			which += " and others"
		}
	}
	return frame.Because(frame.FoldedFunctions, f.match.Entry.Function.Addr, which)
}
