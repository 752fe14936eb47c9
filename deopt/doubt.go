package deopt

import (
	"fmt"

	"reframe/deopt/frame"
	"reframe/deopt/unwind"
)

// doubt is why a frame may not be there: the innermost guess of its stack that it, or one further in, was found by. All frames beyond a guess
// stand and fall with it: their stack pointers and registers come from it. What stays certain of them is none of their values.
type doubt struct {
	index int    // of the frame that was found by the guess
	why   string // what [unwind.Frame.Guess] says of that
}

// doubtOf is the doubt of a frame whose callee is within.
func doubtOf(p *unwind.Frame, within *Frame) *doubt {
	switch {
	case within != nil && within.guess != nil:
		return within.guess
	case p.Guess != "":
		return &doubt{p.Index, p.Guess}
	}
	return nil
}

// Uncertain says why the frame may be none: it was found by a guess, or its place depends on that of one that was. It is "" where the frame is certain.
func (f *Frame) Uncertain() string {
	switch d := f.guess; {
	case d == nil:
		return ""
	case d.index == f.Index:
		return d.why
	default:
		return fmt.Sprintf("it lies beyond frame #%d, which was found by a guess: %s", d.index, d.why)
	}
}

// doubtSlots marks the values of a frame that may be none.
func (f *Frame) doubtSlots() {
	if f.guess == nil {
		return
	}
	for i := range f.Slots {
		if s := &f.Slots[i]; s.Status == frame.OK {
			s.Status, s.Reason = frame.Guessed, fmt.Sprintf("frame #%d is a guess: %s", f.Index, f.Uncertain())
		}
	}
}

// refuseGuess is the error of whoever would go on from a frame that may be none.
func (f *Frame) refuseGuess() error {
	if f.guess == nil {
		return nil
	}
	return fmt.Errorf("%s, is a guess: %s; explain -f %d says how it was found, and --force goes on from it all the same", f.Title(), f.Uncertain(), f.Index)
}
