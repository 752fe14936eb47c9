package interp

import "errors"

// nonLocalJump is a pending non-local jump: the run continues in a frame further out. Until the jump reaches that frame, it is passed up as an error, also
// through built-in functions that called back.
type nonLocalJump interface {
	error
	// perform removes frames down to the one where the run continues, and sets its next instruction or edge. If that frame is not above base, perform
	// removes the frames above base and returns the jump itself.
	perform(in *Interp, base int) error
}

// handle handles an error of the running frame. It performs a pending non-local jump and returns any other error.
func (in *Interp) handle(base int, err error) error {
	var f nonLocalJump
	if !errors.As(err, &f) {
		return err
	}
	if fr := in.top(); in.opt.Trace != nil {
		in.opt.Trace(Traced{Instr: fr.at(true), Depth: in.frames.n - 1})
	}
	if err := f.perform(in, base); err != nil {
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

// leave removes the running frame, which waits for a call that will not return.
func (in *Interp) leave() {
	fr := in.top()
	fr.abandon(true)
	if fr.owes != nil {
		fr.owes.result.value.s = nil // the frame returns nothing
	}
	in.pop()
}
