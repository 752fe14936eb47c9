// Package isa decodes machine code, one instruction at a time, for callers that do not depend on the architecture. It gives the length of an instruction,
// whether it is a call, its effect on control flow, and whether it starts the call that LLVM puts into a patchpoint.
//
// Its main type is [Set]; [Of] returns the Set of an architecture. Package isa/amd64 decodes x86-64, isa/arm64 decodes arm64, and tables in this package
// decode ppc64, riscv64 and s390x. isa/amd64 also has functions that only x86-64 needs.
//
// # Security
//
// Code is hostile. The package reads only the slice that it is given, each read of memory advances by at least one byte, and a [Window] reads a limited
// number of instructions.
package isa

import (
	"encoding/hex"
	"strings"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/amd64"
)

// Set holds the functions that decode the code of one architecture. Pass each function Longest bytes of code, or fewer if the code ends before.
type Set struct {
	Longest int // length of the longest instruction in bytes
	// DirectCall is the length of a direct call. PatchpointSize is the length of the call that LLVM puts into a patchpoint, if it is the same for every
	// target. Each is 0 if this package does not know it.
	DirectCall, PatchpointSize int

	Length func(code []byte) int // in bytes; 0 if the instruction is unknown or cut off
	IsCall func(code []byte) bool
	// Jump returns the target of a direct jump. It returns false for a call, and for a branch that is never taken.
	Jump func(code []byte, at machine.Addr) (to machine.Addr, ok bool)
	// CallFrom reports whether a call ends at pc. It decodes from start, which must be an instruction boundary, and returns false if it cannot decode up to
	// pc.
	CallFrom func(m machine.Memory, start, pc machine.Addr) bool
	// PatchpointCall returns the length of the call that LLVM puts at the start of a patchpoint's region if its target is a number. It returns 0 for
	// other code, and for code that may also be an ordinary call after a stackmap. A call whose target is a symbol always has such code.
	PatchpointCall func(code []byte) int
	// CallTarget returns the target of the direct call that ends at pc; nil if not implemented.
	CallTarget func(m machine.Memory, pc machine.Addr) (to machine.Addr, ok bool)
	// LoadedTarget returns the target of the call through a register at offset call, if the function always loads that register with a number before the
	// call. In LLVM's large code model every call has this form. load is the offset of the load. LoadedTarget is nil if not implemented.
	LoadedTarget func(code []byte, start machine.Addr, call int) (load int, to machine.Addr, ok bool)
	// Text returns an instruction in the syntax of the GNU assembler. symbol returns a name for an address. nil if not implemented.
	Text func(code []byte, at machine.Addr, symbol func(machine.Addr) string) (text string, length int)
	// Step returns the effect of an instruction on the control flow; nil if not implemented.
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

// Of returns the Set of an architecture, or nil if this package does not decode it.
func Of(arch *machine.Arch) *Set { return sets[arch] }

// LongestPatchpointCall is the greatest length that PatchpointCall returns on any architecture, in bytes.
const LongestPatchpointCall = 9 * 4

// Longest is the length of the longest instruction of any architecture, in bytes.
const Longest = amd64.Longest

// Spaced prints bytes in hexadecimal, separated by blanks.
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
