package amd64

import (
	"golang.org/x/arch/x86/x86asm"

	"example.com/reframe/internal/machine"
)

// DirectCall is the length of a call, and of a jump, that holds its target, as how far from its end that is: call rel32, jmp rel32.
const DirectCall = 5

// The shortest and the longest call that compilers write: call *%rax, and one through memory
// with a REX and two more prefixes.
const (
	shortestCall = 2
	longestCall  = 10
)

// CallBefore reports whether a call ends at pc, as it must if it pushed pc as its return address. The starts of instructions are not known, so bytes
// that happen to look like a call count as one. The error is that of the memory before pc.
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

// endsInCall reports whether some suffix of code is a call.
func endsInCall(code []byte) bool {
	if !mayEndInCall(code) {
		return false // as most of what is asked about, for less than the decoding takes
	}
	for ; len(code) >= shortestCall; code = code[1:] {
		if inst, known := Decode(code); known && inst.Len == len(code) && IsCall(inst) {
			return true
		}
	}
	return false
}

// mayEndInCall reports whether the last bytes of code have the opcode of a call at the place where a call that ends with them has it: e8 followed by
// two or four bytes, or ff /2 or /3 followed by its ModRM byte and the bytes that this may require (Intel SDM, volume 2, CALL).
func mayEndInCall(code []byte) bool {
	n := len(code)
	if n >= DirectCall && code[n-DirectCall] == 0xe8 || n >= 3 && code[n-3] == 0xe8 {
		return true
	}
	for at := max(n-7, 0); at < n-1; at++ {
		if reg := code[at+1] >> 3 & 7; code[at] == 0xff && (reg == 2 || reg == 3) {
			return true
		}
	}
	return false
}

// CallFrom reports whether a call ends at pc, by the instructions from start on, where one
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

// IsCall reports whether an instruction is a call, near or far.
func IsCall(inst x86asm.Inst) bool { return inst.Op == x86asm.CALL || inst.Op == x86asm.LCALL }
