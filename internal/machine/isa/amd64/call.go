package amd64

import (
	"golang.org/x/arch/x86/x86asm"

	"example.com/reframe/internal/machine"
)

// DirectCall is the length of call rel32 and jmp rel32, which hold the distance from their end to the target.
const DirectCall = 5

// These are the lengths of the shortest and the longest call that compilers write: call *%rax, and a call through memory with a REX and two more prefixes.
const (
	shortestCall = 2
	longestCall  = 10
)

// CallBefore reports whether a call may end at pc; one does if pc is a return address. Instruction boundaries are not known, so bytes that only look
// like a call count too. CallBefore returns an error if it cannot read the memory before pc.
func CallBefore(m machine.Memory, pc machine.Addr) (bool, error) {
	var err error
	// A function may start at the beginning of readable memory, so fewer bytes may be readable.
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
		return false // cheap early exit: most code does not end in a call
	}
	for ; len(code) >= shortestCall; code = code[1:] {
		if inst, known := Decode(code); known && inst.Len == len(code) && IsCall(inst) {
			return true
		}
	}
	return false
}

// mayEndInCall reports whether the last instruction of code may be a call, judging only by the opcodes near its end. These are e8 with two or four
// bytes after it, and ff /2 or /3 with its ModRM byte and the bytes that this may require (Intel SDM, volume 2, CALL).
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

// CallFrom reports whether a call ends at pc. It decodes from start, which must be an instruction boundary, and returns false if it cannot decode up to pc.
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
