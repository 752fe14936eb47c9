package interp

import "example.com/reframe/internal/machine"

// Peek reads memory as the last run left it: its stores, and else the target's memory. undefined is as long as data and gets a bit for each that is
// not known. The error is a [*FaultError] where the memory cannot be read.
func (in *Interp) Peek(data, undefined []byte, addr machine.Addr) error {
	return in.view.read(data, undefined, addr)
}
