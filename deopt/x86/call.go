package x86

import (
	"golang.org/x/arch/x86/x86asm"

	"reframe/deopt/machine"
)

// The shortest and the longest call that compilers write: call *%rax, and one through memory
// with a REX and two more prefixes.
const (
	shortestCall = 2
	longestCall  = 10
)

// CallBefore says whether a call ends at pc, as one must that pushed pc as its return
// address. Where instructions start is not known, so that bytes which happen to look like a
// call count as one. The error is that of the memory before pc.
func CallBefore(m machine.Memory, pc machine.Addr) (bool, error) {
	var err error
	// A function may start just where memory starts: fewer bytes will do then.
	for n := longestCall; n >= shortestCall; n-- {
		var b [longestCall]byte
		if err = m.ReadMemory(b[:n], pc-machine.Addr(n)); err == nil {
			return endsInCall(b[:n]), nil
		}
	}
	return false, err
}

// endsInCall says whether some suffix of code is a call.
func endsInCall(code []byte) bool {
	for ; len(code) >= shortestCall; code = code[1:] {
		if inst, known := Decode(code); known && inst.Len == len(code) && IsCall(inst) {
			return true
		}
	}
	return false
}

// CallFrom says whether a call ends at pc, by the instructions from start on, where one
// starts. It is false where they cannot be followed to pc.
func CallFrom(m machine.Memory, start, pc machine.Addr) bool {
	for at := start; at < pc; {
		inst, known, err := Read(m, at)
		if err != nil || inst.Len == 0 {
			return false
		}
		if at += machine.Addr(inst.Len); at == pc {
			return known && IsCall(inst)
		}
	}
	return false
}

// IsCall says whether an instruction is a call, near or far.
func IsCall(inst x86asm.Inst) bool { return inst.Op == x86asm.CALL || inst.Op == x86asm.LCALL }
