package interp

import "example.com/reframe/internal/machine"

// Peek reads memory as the last run left it: its stores, and elsewhere the target's memory. undefined is as long as data; Peek sets a bit in it for
// each undefined bit. The error is a [*FaultError] if the memory cannot be read.
func (in *Interp) Peek(data, undefined []byte, addr machine.Addr) error {
	return in.view.read(data, undefined, addr)
}
