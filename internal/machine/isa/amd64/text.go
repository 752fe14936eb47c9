package amd64

import (
	"fmt"
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"example.com/reframe/internal/machine"
)

// Bad is the text that disassemblers print for bytes that they cannot decode.
const Bad = "(bad)"

// Text returns the first instruction in code, which lies at the address at, in the syntax of the GNU assembler (AT&T), and its length. For an unknown
// instruction the text is [Bad]; if its length is unknown too, the length is 1. symbol returns a name for an address, such as "pause" or "main+0x10",
// or "".
func Text(code []byte, at machine.Addr, symbol func(machine.Addr) string) (text string, length int) {
	inst, known := Decode(code)
	switch {
	case inst.Len == 0:
		return Bad, min(1, len(code))
	case !known:
		return Bad, inst.Len
	case inst.Op == x86asm.NOP && inst.Opcode == 0: // an instruction that [Decode] decodes itself
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

// hints names the instructions that [Decode] returns as a NOP, by their second to last byte.
var hints = map[byte]string{0x1e: "endbr64", 0xf8: "vzeroupper", 0xfc: "vzeroall"}

// spelled calls x86asm and recovers from panics, which its documentation does not rule out.
func spelled(inst x86asm.Inst, at machine.Addr) (text string) {
	defer func() {
		if recover() != nil {
			text = Bad
		}
	}()
	// x86asm omits an address of 0 without base and index, such as %fs:0x0. Print a marker value instead: no other number in an instruction with a memory
	// operand has more than 32 bits.
	const zero = 1 << 40
	for i, arg := range inst.Args {
		if m, ok := arg.(x86asm.Mem); ok && m.Base == 0 && m.Index == 0 && m.Disp == 0 {
			m.Disp = zero
			inst.Args[i] = m
		}
	}
	text = x86asm.GNUSyntax(inst, uint64(at), nil)
	text = strings.Replace(text, fmt.Sprintf("%#x", int64(zero)), "0x0", 1)
	return strings.Replace(text, ",%riz)", ")", 1) // x86asm prints %riz if there is no index
}
