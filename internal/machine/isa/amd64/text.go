package amd64

import (
	"fmt"
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"example.com/reframe/internal/machine"
)

// Bad is the text that disassemblers print for bytes that are no instruction they know.
const Bad = "(bad)"

// Text spells the instruction that code starts with and that lies at an address, as the GNU
// assembler does (AT&T syntax), and returns its length. It is [Bad] where the meaning is not
// known, with the length all the same where that is known, and else 1. symbol names what
// starts at an address, or is in it: "pause", "main+0x10", or "".
func Text(code []byte, at machine.Addr, symbol func(machine.Addr) string) (text string, length int) {
	inst, known := Decode(code)
	switch {
	case inst.Len == 0:
		return Bad, min(1, len(code))
	case !known:
		return Bad, inst.Len
	case inst.Op == x86asm.NOP && inst.Opcode == 0: // one of those that [Decode] knows better than x86asm
		if text = hints[code[inst.Len-2]]; text == "" {
			text = Bad
		}
		return text, inst.Len
	}
	text = spelled(inst, at)
	if by, ok := inst.Args[0].(x86asm.Rel); ok && text != Bad {
		if name := symbol(at + machine.Addr(inst.Len) + machine.Addr(int64(by))); name != "" {
			text += fmt.Sprintf(" <%s>", name)
		}
	}
	return text, inst.Len
}

// hints spells the instructions that [Decode] makes a NOP of, by their last byte but one.
var hints = map[byte]string{0x1e: "endbr64", 0xf8: "vzeroupper", 0xfc: "vzeroall"}

// spelled calls x86asm, which is not known to panic and not promised not to.
func spelled(inst x86asm.Inst, at machine.Addr) (text string) {
	defer func() {
		if recover() != nil {
			text = Bad
		}
	}()
	// It leaves out an address of 0 that no register is added to, such as %fs:0x0. With an operand
	// in memory no other number in an instruction has more than 32 bits.
	const zero = 1 << 40
	for i, arg := range inst.Args {
		if m, ok := arg.(x86asm.Mem); ok && m.Base == 0 && m.Index == 0 && m.Disp == 0 {
			m.Disp = zero
			inst.Args[i] = m
		}
	}
	text = x86asm.GNUSyntax(inst, uint64(at), nil)
	text = strings.Replace(text, fmt.Sprintf("%#x", int64(zero)), "0x0", 1)
	return strings.Replace(text, ",%riz)", ")", 1) // that there is no index is no register
}
