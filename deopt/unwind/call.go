package unwind

import (
	"errors"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/amd64"
)

// callEndsAt reports whether a call instruction ends at pc, so that pc can be a return address. It returns an error if the memory before pc cannot be
// read, or calls on the architecture are not known.
func (u *codeReader) callEndsAt(pc machine.Addr) (bool, error) {
	code := u.Finder.Code(pc - 1)
	called, known := code.called[pc]
	if known {
		return called, nil
	}
	called, err := u.readCall(pc)
	if err == nil {
		if code.called == nil || len(code.called) >= maxWays {
			code.called = map[machine.Addr]bool{}
		}
		code.called[pc] = called
	}
	return called, err
}

// readCall does the work of callEndsAt without the cache.
func (u *codeReader) readCall(pc machine.Addr) (bool, error) {
	if u.Arch == machine.AMD64 {
		return amd64.CallBefore(u.Memory, pc)
	}
	err := errors.New("what a call is on " + u.Arch.Title + " is not known")
	for _, form := range u.Arch.Calls.Forms {
		var b [8]byte
		code := b[:form.Size]
		if err = u.Memory.ReadMemory(code, pc-machine.Addr(form.Size)); err != nil {
			continue
		}
		if u.Arch.EndsInCall(code) {
			return true, nil
		}
	}
	return false, err
}
