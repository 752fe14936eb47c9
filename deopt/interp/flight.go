package interp

import "errors"

// flight is a pending non-local jump: the run continues in a frame further out. Until it reaches that frame, the jump is passed up as an error, also
// through functions of the table that called back.
type flight interface {
	error
	// land removes frames down to the one where the run continues, which is left before its next instruction or with its next edge chosen. Where that
	// one is not among those above base, land removes these and returns the jump itself.
	land(in *Interp, base int) error
}

// arrive continues after an error of the running frame, where that is a pending jump.
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

// leave removes the running frame, which waits for a call and will not continue.
func (in *Interp) leave() {
	fr := in.top()
	fr.abandon(true)
	if fr.owes != nil {
		fr.owes.result.value.s = nil // nothing is returned
	}
	in.pop()
}
