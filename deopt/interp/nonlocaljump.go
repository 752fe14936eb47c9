package interp

import "errors"

// nonLocalJump is a pending non-local jump (longjmp or a thrown exception) to a frame further out. It is returned as an error until the jump reaches
// that frame, also through built-in functions that called back.
type nonLocalJump interface {
	error
	// perform removes the frames inside the one where the run continues, and sets the next instruction or edge of that one. If that frame has an index
	// below base, perform removes all frames from base on, and returns the jump itself.
	perform(in *Interp, base int) error
}

// handle performs a pending non-local jump if err is one. It returns any other error of the running frame.
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

// leave removes the running frame during a non-local jump. The frame waits for a call that will not return.
func (in *Interp) leave() {
	fr := in.top()
	fr.abandon(true)
	if fr.owes != nil {
		fr.owes.result.value.s = nil // without a result, there is nothing to check on return
	}
	in.pop()
}
