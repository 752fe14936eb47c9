// Package isa reads the machine code of ppc64, riscv64 and s390x by tables: how long an instruction is, whether it calls, where
// it jumps to, and which instructions are the call that LLVM puts into a patchpoint. What a call is, [machine.Arch.Calls] says.
//
// Its main type is [Set], of which [Of] has one for each of these architectures.
//
// # Security
//
// Code is hostile. Nothing is read past the slice that was given, and each look at memory goes on by at least two bytes.
package isa

import (
	"encoding/binary"

	"reframe/deopt/machine"
)

// Set is the instructions of one architecture. Its functions take bytes that start with an instruction.
type Set struct {
	// Longest is the length of the longest instruction, in bytes, and Align what all of them are aligned to.
	Longest, Align int

	arch       *machine.Arch
	length     func(code []byte, order binary.ByteOrder) int
	jumps      []jump
	patchpoint func(s *Set, code []byte) int
}

// jump is a form of instruction that goes on elsewhere, and holds how far from it that is, in bytes.
type jump struct {
	machine.CallForm
	by func(word uint64) int64
}

var sets = map[*machine.Arch]*Set{
	machine.PPC64:   {8, 4, machine.PPC64, ppcLength, ppcJumps, ppcPatchpoint},
	machine.PPC64LE: {8, 4, machine.PPC64LE, ppcLength, ppcJumps, ppcPatchpoint},
	machine.RISCV64: {4, 2, machine.RISCV64, riscvLength, riscvJumps, riscvPatchpoint},
	machine.S390X:   {6, 2, machine.S390X, s390xLength, s390xJumps, s390xPatchpoint},
}

// Of returns the instructions of an architecture, nil for one that this package does not know.
func Of(arch *machine.Arch) *Set { return sets[arch] }

// Length returns the length of the instruction that code starts with, in bytes; 0 where it is not known, or not all there.
func (s *Set) Length(code []byte) int {
	n := s.length(code, s.arch.Calls.Order)
	if n > len(code) {
		return 0
	}
	return n
}

// word returns the instruction that code starts with as a number, and its length, 0 where that is not known.
func (s *Set) word(code []byte) (w uint64, n int) {
	n = s.Length(code)
	if n == 0 {
		return 0, 0
	}
	return s.arch.Calls.Word(code[:n]), n
}

func form(size int, mask, value uint64) machine.CallForm {
	return machine.CallForm{Size: size, Mask: mask, Value: value}
}

// is says whether an instruction, a number of some length, is of a form.
func is(w uint64, n int, f machine.CallForm) bool { return f.Size == n && w&f.Mask == f.Value }

// all returns the length of instructions that code starts with, if they are of all the forms in turn.
func (s *Set) all(code []byte, forms ...machine.CallForm) (length int) {
	for _, f := range forms {
		w, n := s.word(code[length:])
		if n == 0 || !is(w, n, f) {
			return 0
		}
		length += n
	}
	return length
}

// IsCall says whether code starts with a call: an instruction that leaves the return address in [machine.Arch.Link].
func (s *Set) IsCall(code []byte) bool {
	w, n := s.word(code)
	for _, f := range s.arch.Calls.Forms {
		if is(w, n, f) {
			return true
		}
	}
	return false
}

// CallFrom says whether a call ends at pc, by the instructions from start on, where one starts. It is false where they cannot be
// followed to pc.
func (s *Set) CallFrom(m machine.Memory, start, pc machine.Addr) bool {
	buf := make([]byte, s.Longest)
	for at := start; at < pc; {
		code, err := machine.ReadSome(m, at, buf)
		n := s.Length(code)
		if err != nil || n == 0 {
			return false
		}
		if at += machine.Addr(n); at == pc {
			return s.IsCall(code)
		}
	}
	return false
}

// Jump returns where the instruction at an address leads that code starts with, if that is a jump whose target it holds. A call is
// none, nor is a branch that is never taken.
func (s *Set) Jump(code []byte, at machine.Addr) (to machine.Addr, ok bool) {
	w, n := s.word(code)
	for _, j := range s.jumps {
		if is(w, n, j.CallForm) {
			return at + machine.Addr(j.by(w)), true
		}
	}
	return 0, false
}

// PatchpointCall returns the length of the call that LLVM puts at the start of a patchpoint's region where its target is a number: 0
// where there is another code, or one that may as well be that of an ordinary call behind a stackmap. Where the target is
// a symbol the call always is.
func (s *Set) PatchpointCall(code []byte) int { return s.patchpoint(s, code) }

// LongestPatchpointCall is as many bytes as any of those calls has.
const LongestPatchpointCall = 9 * 4

// signed takes the low bits of a number for a signed one.
func signed(v uint64, bits int) int64 { return int64(v<<(64-bits)) >> (64 - bits) }

// bits are some of a number, from low on.
func bits(w uint64, low, n int) uint64 { return w >> low & (1<<n - 1) }
