package isa

import (
	"encoding/binary"

	"example.com/reframe/internal/machine"
)

// table describes an architecture with few forms of instructions. [machine.Arch.Calls] describes its calls.
type table struct {
	arch       *machine.Arch
	longest    int // bytes
	length     func(code []byte, order binary.ByteOrder) int
	jumps      []jump
	patchpoint func(t *table, code []byte) int
}

// jump is a form of a direct branch; by decodes the distance to its target in bytes.
type jump struct {
	machine.CallForm
	by func(word uint64) int64
}

func (t *table) set() *Set {
	return &Set{
		Longest: t.longest, Length: t.lengthOf, IsCall: t.isCall, Jump: t.jump, CallFrom: t.callFrom,
		PatchpointCall: func(code []byte) int { return t.patchpoint(t, code) },
	}
}

// lengthOf returns the length of the first instruction in code, in bytes; 0 if it is unknown or cut off.
func (t *table) lengthOf(code []byte) int {
	n := t.length(code, t.arch.Calls.Order)
	if n > len(code) {
		return 0
	}
	return n
}

// word returns the first instruction in code as a number, and its length, or 0 if that is unknown.
func (t *table) word(code []byte) (w uint64, n int) {
	n = t.lengthOf(code)
	if n == 0 {
		return 0, 0
	}
	return t.arch.Calls.Word(code[:n]), n
}

func form(size int, mask, value uint64) machine.CallForm {
	return machine.CallForm{Size: size, Mask: mask, Value: value}
}

// is reports whether the instruction w with length n has form f.
func is(w uint64, n int, f machine.CallForm) bool { return f.Size == n && w&f.Mask == f.Value }

// all returns the total length of the first instructions in code if they have these forms, in this order; 0 otherwise.
func (t *table) all(code []byte, forms ...machine.CallForm) (length int) {
	for _, f := range forms {
		w, n := t.word(code[length:])
		if n == 0 || !is(w, n, f) {
			return 0
		}
		length += n
	}
	return length
}

// isCall reports whether code starts with a call.
func (t *table) isCall(code []byte) bool {
	w, n := t.word(code)
	for _, f := range t.arch.Calls.Forms {
		if is(w, n, f) {
			return true
		}
	}
	return false
}

// callFrom reports whether a call ends at pc. It decodes from start, which must be an instruction boundary, and returns false if it cannot decode up to pc.
func (t *table) callFrom(m machine.Memory, start, pc machine.Addr) bool {
	buf := make([]byte, t.longest)
	for at := start; at < pc; {
		code, err := machine.ReadSome(m, at, buf)
		n := t.lengthOf(code)
		if err != nil || n == 0 {
			return false
		}
		if at += machine.Addr(n); at == pc {
			return t.isCall(code)
		}
	}
	return false
}

// jump returns the target of the first instruction in code, which lies at the address at, if it is a direct jump. It returns false for a call, and for a
// branch that is never taken.
func (t *table) jump(code []byte, at machine.Addr) (to machine.Addr, ok bool) {
	w, n := t.word(code)
	for _, j := range t.jumps {
		if is(w, n, j.CallForm) {
			return at + machine.Addr(j.by(w)), true
		}
	}
	return 0, false
}

// signed sign-extends the low bits of a number.
func signed(v uint64, bits int) int64 { return int64(v<<(64-bits)) >> (64 - bits) }

// bits returns n bits of a number, from bit low on.
func bits(w uint64, low, n int) uint64 { return w >> low & (1<<n - 1) }
