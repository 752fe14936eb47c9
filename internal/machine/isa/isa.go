// Package isa reads machine code, an instruction at a time, for code that does not depend on the architecture: how long an instruction is, whether it
// calls, where it leads to, and which instructions are the call that LLVM puts into a patchpoint.
//
// Its main type is [Set], of which [Of] has one for each architecture whose code is read: x86-64 by isa/amd64, arm64 by isa/arm64, ppc64, riscv64 and
// s390x by the tables here. isa/amd64 has the functions that are only for x86-64.
//
// # Security
//
// Code is hostile. Nothing is read past the slice that was given, each read of memory advances by at least one byte, and a [Window] reads a bounded
// number of instructions.
package isa

import (
	"encoding/hex"
	"strings"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/amd64"
)

// Set holds the functions that read the code of one architecture. Each takes bytes that start with an instruction, as many as the longest has if
// there are so many.
type Set struct {
	Longest int // of the instructions, in bytes
	// DirectCall is the length of a call that holds its target, and PatchpointSize that of the call that LLVM puts into a patchpoint, where it is the
	// same for every target; 0 where this package does not know it.
	DirectCall, PatchpointSize int

	Length func(code []byte) int // in bytes; 0 where it is not known, or not all there
	IsCall func(code []byte) bool
	// Jump returns the target of an instruction that is a jump and holds its target. It returns false for a call, and for a branch that is never
	// taken.
	Jump func(code []byte, at machine.Addr) (to machine.Addr, ok bool)
	// CallFrom reports whether a call ends at pc, by the instructions from start on, where one starts. It is false where they cannot be
	// followed to pc.
	CallFrom func(m machine.Memory, start, pc machine.Addr) bool
	// PatchpointCall returns the length of the call that LLVM puts at the start of a patchpoint's region where its target is a number: 0 where there
	// is other code, or code that may as well be an ordinary call after a stackmap. Where the target is a symbol the call always is.
	PatchpointCall func(code []byte) int
	// CallTarget returns the target of the call that ends at pc, if its instruction holds the target; nil where no function here can tell.
	CallTarget func(m machine.Memory, pc machine.Addr) (to machine.Addr, ok bool)
	// LoadedTarget returns the target of a call through a register, if the code of its function always loads that register with a number before the call: in
	// LLVM's large code model each call is such. call is the offset of the call and load that of the instruction with the number. nil where nothing here can tell.
	LoadedTarget func(code []byte, start machine.Addr, call int) (load int, to machine.Addr, ok bool)
	// Text spells an instruction as the GNU assembler does, with the names of addresses that symbol knows; nil where nothing here can.
	Text func(code []byte, at machine.Addr, symbol func(machine.Addr) string) (text string, length int)
	// Step returns the effect of an instruction on the control flow; nil where no function here can tell.
	Step func(code []byte, at machine.Addr) Step
}

var sets = map[*machine.Arch]*Set{
	machine.AMD64:   amd64Set,
	machine.ARM64:   arm64Set,
	machine.PPC64:   (&table{machine.PPC64, 8, ppcLength, ppcJumps, ppcPatchpoint}).set(),
	machine.PPC64LE: (&table{machine.PPC64LE, 8, ppcLength, ppcJumps, ppcPatchpoint}).set(),
	machine.RISCV64: (&table{machine.RISCV64, 4, riscvLength, riscvJumps, riscvPatchpoint}).set(),
	machine.S390X:   (&table{machine.S390X, 6, s390xLength, s390xJumps, s390xPatchpoint}).set(),
}

// Of returns the instructions of an architecture, nil for one whose code is not read.
func Of(arch *machine.Arch) *Set { return sets[arch] }

// LongestPatchpointCall is the length in bytes of the longest of those calls.
const LongestPatchpointCall = 9 * 4

// Longest is the length of the longest instruction of any architecture, in bytes.
const Longest = amd64.Longest

// Spaced spells bytes in hexadecimal, the first one first.
func Spaced(b []byte) string {
	var out strings.Builder
	for n := range b {
		if n > 0 {
			out.WriteByte(' ')
		}
		out.WriteString(hex.EncodeToString(b[n : n+1]))
	}
	return out.String()
}
