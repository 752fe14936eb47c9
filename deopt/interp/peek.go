package interp

import "example.com/reframe/internal/machine"

// Peek reads memory as it is after the last run: stored bytes from the view, and others from the target. undefined is as long as data; Peek sets a
// bit in it for each undefined bit. If the memory cannot be read, the error is a [*FaultError].
func (in *Interp) Peek(data, undefined []byte, addr machine.Addr) error {
	return in.view.read(data, undefined, addr)
}
