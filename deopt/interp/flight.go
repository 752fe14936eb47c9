package interp

import "errors"

// flight is a pending non-local jump: the run continues in a frame further out. Until it reaches that frame, the jump is passed up as an error, also
// through functions of the table that called back.
type flight interface {
	error
	// land takes frames away down to the one where the run goes on, which is left standing
	// before its next instruction or with its next edge chosen. Where that one is not among
	// those above base it takes these away and returns itself.
	land(in *Interp, base int) error
}

// arrive goes on after an error of the running frame, where that is a flight.
func (in *Interp) arrive(base int, err error) error {
	var f flight
	if !errors.As(err, &f) {
		return err
	}
	if fr := in.top(); in.opt.Trace != nil {
		in.opt.Trace(Traced{Instr: fr.at(true), Depth: in.frames.n - 1})
	}
	if err := f.land(in, base); err != nil {
		if errors.Is(err, f) {
			return err
		}
		return in.located(err, true)
	}
	fr := in.top()
	halt := in.run.once
	if fr.next != nil {
		halt = in.enterBlock(fr) || halt
	}
	if halt && in.run.nested == 0 {
		return errHalted
	}
	return nil
}

// leave takes the running frame away, which waits for a call and will not go on.
func (in *Interp) leave() {
	fr := in.top()
	fr.abandon(true)
	if fr.owes != nil {
		fr.owes.result.value.s = nil // nothing is returned
	}
	in.pop()
}
