package isa

import (
	"encoding/binary"
	"slices"

	"example.com/reframe/internal/machine"
)

// riscvLength decodes the length from the low bits of the first half-word (RISC-V Unprivileged ISA, section "Expanded Instruction-Length Encoding").
// Encodings above 32 bits are not ratified, and return 0.
func riscvLength(code []byte, _ binary.ByteOrder) int {
	switch {
	case len(code) < 2, code[0]&0x1f == 0x1f, code[0] == 0 && code[1] == 0: // an all-zero half-word is an illegal instruction
		return 0
	case code[0]&3 == 3:
		return 4
	}
	return 2
}

// riscvJumps are jal without a link and the conditional branches ("The RISC-V Instruction Set Manual", volume I, sections
// "Control Transfer Instructions" of RV32I and of the C extension).
var riscvJumps = []jump{
	{form(4, 0xfff, 0x6f), func(w uint64) int64 { // j
		return signed(bits(w, 31, 1)<<20|bits(w, 12, 8)<<12|bits(w, 20, 1)<<11|bits(w, 21, 10)<<1, 21)
	}},
	{form(4, 0x607f, 0x0063), riscvBranch}, // beq, bne
	{form(4, 0x407f, 0x4063), riscvBranch}, // blt, bge, bltu, bgeu
	{form(2, 0xe003, 0xa001), func(w uint64) int64 { // c.j
		return signed(bits(w, 12, 1)<<11|bits(w, 8, 1)<<10|bits(w, 9, 2)<<8|bits(w, 6, 1)<<7|bits(w, 7, 1)<<6|bits(w, 2, 1)<<5|
			bits(w, 11, 1)<<4|bits(w, 3, 3)<<1, 12)
	}},
	{form(2, 0xc003, 0xc001), func(w uint64) int64 { // c.beqz, c.bnez
		return signed(bits(w, 12, 1)<<8|bits(w, 5, 2)<<6|bits(w, 2, 1)<<5|bits(w, 10, 2)<<3|bits(w, 3, 2)<<1, 9)
	}},
}

func riscvBranch(w uint64) int64 {
	return signed(bits(w, 31, 1)<<12|bits(w, 7, 1)<<11|bits(w, 25, 6)<<5|bits(w, 8, 4)<<1, 13)
}

// riscvLoads lists the instructions that compute a number in ra only from ra and zero, and riscvCalls the calls through ra.
var (
	riscvLoads = []machine.CallForm{
		form(4, 0x00000fff, 0x000000b7), // lui ra,imm
		form(4, 0x000f7fff, 0x00000093), // addi ra,zero or ra,imm
		form(4, 0x000f7fff, 0x0000009b), // addiw ra,zero or ra,imm
		form(4, 0xfc0fffff, 0x00009093), // slli ra,ra,shamt
		form(4, 0xfc0fffff, 0x0000d093), // srli ra,ra,shamt
		form(2, 0xef83, 0x4081),         // c.li ra,imm
		form(2, 0xef83, 0x6081),         // c.lui ra,imm
		form(2, 0xef83, 0x0081),         // c.addi ra,imm
		form(2, 0xef83, 0x2081),         // c.addiw ra,imm
		form(2, 0xef83, 0x0082),         // c.slli ra,shamt
	}
	riscvCalls = []machine.CallForm{
		form(4, 0xffffffff, 0x000080e7), // jalr ra,0(ra)
		form(2, 0xffff, 0x9082),         // c.jalr ra
	}
)

// riscvPatchpoint recognizes the code that RISCVAsmPrinter::LowerPATCHPOINT writes for a processor with the base instructions: up to eight instructions
// that compute the target in ra, and a call through ra. Ordinary calls do not compute their target in ra.
func riscvPatchpoint(t *table, code []byte) (length int) {
	for loads := range 9 {
		w, n := t.word(code[length:])
		if n == 0 {
			return 0
		}
		length += n
		this := func(f machine.CallForm) bool { return is(w, n, f) }
		if loads > 0 && slices.ContainsFunc(riscvCalls, this) {
			return length
		}
		if !slices.ContainsFunc(riscvLoads, this) {
			return 0
		}
	}
	return 0
}
