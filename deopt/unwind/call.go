package unwind

import (
	"golang.org/x/arch/x86/x86asm"

	"reframe/deopt/machine"
)

// The shortest and the longest x86-64 call that compilers write: call *%rax,
// and one through memory with a REX and two more prefixes.
const (
	shortestCall = 2
	longestCall  = 10
)

// callEndsAt says whether a call instruction ends at pc, as one must that
// pushed pc as its return address. The error is that of the memory before pc.
func (w *walk) callEndsAt(pc machine.Addr) (bool, error) {
	var err error
	// A function may start just where memory starts: fewer bytes will do then.
	for n := longestCall; n >= shortestCall; n-- {
		b := make([]byte, n)
		if err = w.Memory.ReadMemory(b, pc-machine.Addr(n)); err == nil {
			return endsInCall(b), nil
		}
	}
	return false, err
}

// endsInCall says whether some suffix of code is a call instruction.
func endsInCall(code []byte) bool {
	for ; len(code) >= shortestCall; code = code[1:] {
		inst, err := x86asm.Decode(code, 64)
		if err == nil && inst.Len == len(code) && (inst.Op == x86asm.CALL || inst.Op == x86asm.LCALL) {
			return true
		}
	}
	return false
}
