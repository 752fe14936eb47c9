// Package arm64 reads the machine code of arm64 (A64), one instruction of four bytes at a time: whether it calls, where it jumps to, how it is
// spelled.
//
// Its main function is [Text]. The spelling of an instruction comes from golang.org/x/arch/arm64/arm64asm; calls and jumps are recognized by their
// bits (Arm Architecture Reference Manual for A-profile, C4.1, "Branches, Exception Generating and System instructions").
//
// # Security
//
// Code is hostile. Nothing is read past the slice that was given, and arm64asm runs under a recover.
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

// Bad is the text of an instruction whose meaning is not known.
const Bad = "(bad)"

// word returns the instruction that code starts with; ok is false where there is less.
func word(code []byte) (w uint32, ok bool) {
	if len(code) < Size {
		return 0, false
	}
	return binary.LittleEndian.Uint32(code), true
}

// Length returns the length of the instruction that code starts with, or 0 where there is less.
func Length(code []byte) int {
	if len(code) < Size {
		return 0
	}
	return Size
}

// IsCall reports whether code starts with a call: bl, blr, or one of those that authenticate the address (blraa, blrab, blraaz,
// blrabz).
func IsCall(code []byte) bool {
	w, ok := word(code)
	switch {
	case !ok:
		return false
	case w&0xfc000000 == 0x94000000, w&0xfffffc1f == 0xd63f0000:
		return true
	case w&0xfefff800 == 0xd63f0800: // with a key: the Z forms have no second operand
		return w&(1<<24) != 0 || w&0x1f == 0x1f
	}
	return false
}

// CallFrom reports whether a call ends at pc that does not begin before start.
func CallFrom(m machine.Memory, start, pc machine.Addr) bool {
	var b [Size]byte
	return pc >= start+Size && m.ReadMemory(b[:], pc-Size) == nil && IsCall(b[:])
}

// CallThrough reports whether code starts with blr of the general register of a number.
func CallThrough(code []byte, register uint32) bool {
	w, ok := word(code)
	return ok && w == 0xd63f0000|register<<5
}

// Jump returns the target of the instruction at the start of code, which lies at an address, if it is a jump that holds its target: b, b.cond, cbz,
// cbnz, tbz, tbnz. It returns false for a call.
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

// offset is a signed number of instructions in some bits of an instruction, in bytes.
func offset(w uint32, low, bits int) machine.Addr {
	return machine.Addr(int64(int32(w<<(32-low-bits))>>(32-bits)) * Size)
}

// SetsWord reports whether code starts with movz, or movk where keep is set, of 16 bits into the general register of a number, all 64
// bits of it, at a shift of 0, 16, 32 or 48.
func SetsWord(code []byte, register uint32, shift uint, keep bool) bool {
	op := uint32(0xd2800000)
	if keep {
		op = 0xf2800000
	}
	w, ok := word(code)
	return ok && w&^(0xffff<<5) == op|uint32(shift/16)<<21|register
}

// Text spells the instruction that code starts with and that lies at an address, as the GNU assembler does, and returns its
// length. It is [Bad] where the meaning is not known. symbol names what starts at an address, or is in it: "pause",
// "main+0x10", or "".
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
		if dot := strings.LastIndex(text, "."); dot >= 0 { // it says .+0x8, and has the number last
			text = text[:dot] + target
		}
	}
	return text, Size
}

// spelled calls arm64asm, which is not known to panic and not promised not to.
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
