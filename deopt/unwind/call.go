package unwind

import (
	"reframe/deopt/machine"
	"reframe/deopt/x86"
)

// callEndsAt says whether a call instruction ends at pc, as one must that
// pushed pc as its return address. The error is that of the memory before pc.
func (w *walk) callEndsAt(pc machine.Addr) (bool, error) { return x86.CallBefore(w.Memory, pc) }
