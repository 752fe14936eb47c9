// Package arm64 decodes arm64 (A64) machine code, one four-byte instruction at a time: whether an instruction is a call, the target of a jump, and the
// text of an instruction.
//
// Its main function is [Text], which uses golang.org/x/arch/arm64/arm64asm. Calls and jumps are recognized by their bits (Arm Architecture Reference
// Manual for A-profile, C4.1, "Branches, Exception Generating and System instructions").
//
// # Security
//
// Code is hostile. The package reads only the slice that it is given, and arm64asm runs under a recover.
package arm64

import (
	"encoding/binary"
	"fmt"
	"strings"

	"golang.org/x/arch/arm64/arm64asm"

	"example.com/reframe/internal/machine"
)

// Size is the size of each instruction, in bytes.
const Size = 4

// Bad is the text of an unknown instruction.
const Bad = "(bad)"

// word returns the first instruction in code; ok is false if code is shorter.
func word(code []byte) (w uint32, ok bool) {
	if len(code) < Size {
		return 0, false
	}
	return binary.LittleEndian.Uint32(code), true
}

// Length returns the length of the first instruction in code, or 0 if code is shorter.
func Length(code []byte) int {
	if len(code) < Size {
		return 0
	}
	return Size
}

// IsCall reports whether code starts with a call: bl, blr, or a call that authenticates the address (blraa, blrab, blraaz, blrabz).
func IsCall(code []byte) bool {
	w, ok := word(code)
	switch {
	case !ok:
		return false
	case w&0xfc000000 == 0x94000000, w&0xfffffc1f == 0xd63f0000:
		return true
	case w&0xfefff800 == 0xd63f0800: // authenticated calls: the Z forms have no second operand
		return w&(1<<24) != 0 || w&0x1f == 0x1f
	}
	return false
}

// CallFrom reports whether a call ends at pc and begins at start or later.
func CallFrom(m machine.Memory, start, pc machine.Addr) bool {
	var b [Size]byte
	return pc >= start+Size && m.ReadMemory(b[:], pc-Size) == nil && IsCall(b[:])
}

// CallThrough reports whether code starts with a blr of the general register with this number.
func CallThrough(code []byte, register uint32) bool {
	w, ok := word(code)
	return ok && w == 0xd63f0000|register<<5
}

// Jump returns the target of the first instruction in code, which lies at the address at, if it is a direct jump: b, b.cond, cbz, cbnz, tbz, tbnz. It
// returns false for a call.
func Jump(code []byte, at machine.Addr) (to machine.Addr, ok bool) {
	w, ok := word(code)
	switch {
	case !ok:
	case w&0xfc000000 == 0x14000000: // b
		return at + offset(w, 0, 26), true
	case w&0xff000000 == 0x54000000, w&0x7e000000 == 0x34000000: // b.cond, bc.cond; cbz, cbnz
		return at + offset(w, 5, 19), true
	case w&0x7e000000 == 0x36000000: // tbz, tbnz
		return at + offset(w, 5, 14), true
	}
	return 0, false
}

// offset decodes a signed field of an instruction that counts instructions, and returns it in bytes.
func offset(w uint32, low, bits int) machine.Addr {
	return machine.Addr(int64(int32(w<<(32-low-bits))>>(32-bits)) * Size)
}

// SetsWord reports whether code starts with a 64-bit movz, or movk if keep is set, into the general register with this number. shift is the position
// of the 16 bits that the instruction sets: 0, 16, 32 or 48.
func SetsWord(code []byte, register uint32, shift uint, keep bool) bool {
	op := uint32(0xd2800000)
	if keep {
		op = 0xf2800000
	}
	w, ok := word(code)
	return ok && w&^(0xffff<<5) == op|uint32(shift/16)<<21|register
}

// Text returns the first instruction in code, which lies at the address at, in the syntax of the GNU assembler, and its length. For an unknown instruction
// the text is [Bad]. symbol returns a name for an address, such as "pause" or "main+0x10", or "".
func Text(code []byte, at machine.Addr, symbol func(machine.Addr) string) (text string, length int) {
	if len(code) < Size {
		return Bad, min(1, len(code))
	}
	inst, text := spelled(code[:Size])
	for _, arg := range inst.Args {
		by, ok := arg.(arm64asm.PCRel)
		if !ok || text == Bad {
			continue
		}
		to := at + machine.Addr(by)
		if inst.Op == arm64asm.ADRP {
			const page = 4 << 10
			to = at&^(page-1) + machine.Addr(by)
		}
		target := fmt.Sprintf("%#x", uint64(to))
		if name := symbol(to); name != "" {
			target += fmt.Sprintf(" <%s>", name)
		}
		if dot := strings.LastIndex(text, "."); dot >= 0 { // the text is .+0x8: replace the number at the end
			text = text[:dot] + target
		}
	}
	return text, Size
}

// spelled calls arm64asm and recovers from panics, which its documentation does not rule out.
func spelled(code []byte) (inst arm64asm.Inst, text string) {
	defer func() {
		if recover() != nil {
			inst, text = arm64asm.Inst{}, Bad
		}
	}()
	inst, err := arm64asm.Decode(code)
	if err != nil {
		return arm64asm.Inst{}, Bad
	}
	return inst, strings.TrimSpace(arm64asm.GNUSyntax(inst))
}
