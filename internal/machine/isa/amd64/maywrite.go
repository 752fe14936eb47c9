package amd64

import "golang.org/x/arch/x86/x86asm"

// Every is the set of all general registers.
const Every Set = 1<<16 - 1

// mayWrite returns the general registers that the first instruction in code may write, as [Writes] does, and the instruction. If only its length is known,
// it returns the registers that its operand fields name as destinations. If not even the length is known, it returns all registers.
func mayWrite(code []byte) (Set, x86asm.Inst) {
	inst, known := Decode(code)
	switch {
	case inst.Len == 0:
		return Every, inst
	case known:
		return Writes(inst), inst
	}
	return named(code[:inst.Len]), inst
}

// These flags mark the operands that are general registers and that the instruction writes.
const (
	inReg  = 1 << iota // ModRM.reg
	inRM               // ModRM.rm, if it is not memory
	inVVVV             // the field vvvv of the prefix
)

// vectorWrites lists the instructions with a VEX or EVEX prefix that write general registers, by opcode map and opcode. It ignores the rest of the prefix,
// so it includes vector instructions with the same opcode (Intel SDM, volume 2: chapters 3 to 5 by the opcodes of appendix A).
var vectorWrites = map[[2]byte]int{
	{1, 0x2c}: inReg, {1, 0x2d}: inReg, {1, 0x78}: inReg, {1, 0x79}: inReg, // vcvt(t)ss2si, vcvt(t)ss2usi, vcvt(t)sd2si, vcvt(t)sd2usi
	{1, 0x50}: inReg, {1, 0xd7}: inReg, // vmovmskps, vpmovmskb
	{1, 0x7e}: inRM,  // vmovd, vmovq
	{1, 0x93}: inReg, // kmov
	{1, 0xc5}: inReg, // vpextrw

	{2, 0xf2}: inReg, {2, 0xf5}: inReg, {2, 0xf7}: inReg, // andn; bzhi, pdep, pext; bextr, sarx, shlx, shrx
	{2, 0xe0}: inReg, {2, 0xe1}: inReg, {2, 0xe2}: inReg, {2, 0xe3}: inReg, {2, 0xe4}: inReg, {2, 0xe5}: inReg, {2, 0xe6}: inReg, {2, 0xe7}: inReg, // cmpccxadd
	{2, 0xe8}: inReg, {2, 0xe9}: inReg, {2, 0xea}: inReg, {2, 0xeb}: inReg, {2, 0xec}: inReg, {2, 0xed}: inReg, {2, 0xee}: inReg, {2, 0xef}: inReg,
	{2, 0xf3}: inVVVV,         // blsr, blsmsk, blsi
	{2, 0xf6}: inReg | inVVVV, // mulx

	{3, 0x14}: inRM, {3, 0x15}: inRM, {3, 0x16}: inRM, {3, 0x17}: inRM, // vpextrb, vpextrw, vpextrd, vextractps
	{3, 0xf0}: inReg, // rorx

	{5, 0x2c}: inReg, {5, 0x2d}: inReg, {5, 0x78}: inReg, {5, 0x79}: inReg, // vcvt(t)sh2si, vcvt(t)sh2usi
	{5, 0x6c}: inReg, {5, 0x6d}: inReg, // vcvttss2sis, vcvttss2usis, vcvttsd2sis, vcvttsd2usis
	{5, 0x7e}: inRM, // vmovw
}

// named returns the registers that an instruction may write, decoded only from its prefixes, opcode and ModRM.
func named(code []byte) Set {
	for len(code) > 0 && prefixes[code[0]] {
		code = code[1:]
	}
	var highR, highB, vvvv, opcodes byte // value 8 is the fourth bit of a register number
	if len(code) > 0 && code[0]&0xf0 == 0x40 {
		highR, highB = code[0]<<1&8, code[0]<<3&8
		code = code[1:]
	}
	switch {
	case len(code) > 3 && code[0] == 0xc5:
		highR, vvvv, opcodes = ^code[1]>>4&8, ^code[1]>>3&15, 1
		code = code[2:]
	case len(code) > 4 && code[0] == 0xc4:
		highR, highB, vvvv, opcodes = ^code[1]>>4&8, ^code[1]>>2&8, ^code[2]>>3&15, code[1]&31
		code = code[3:]
	case len(code) > 5 && code[0] == 0x62:
		highR, highB, vvvv, opcodes = ^code[1]>>4&8, ^code[1]>>2&8, ^code[2]>>3&15, code[1]&7
		code = code[4:]
	case len(code) > 3 && code[0] == 0x0f && (code[1] == 0x38 || code[1] == 0x3a):
		code = code[2:]
	case len(code) > 2 && code[0] == 0x0f:
		code = code[1:]
	default:
		return Every
	}
	operands := inReg | inRM
	switch opcodes {
	case 0: // an instruction without a VEX or EVEX prefix
	case 1, 2, 3, 5, 6:
		operands = vectorWrites[[2]byte{opcodes, code[0]}]
	default: // XOP, APX and undefined maps
		return Every
	}
	modRM := code[1]
	var s Set
	if operands&inReg != 0 {
		s |= Of(numbers[modRM>>3&7|highR])
	}
	if operands&inRM != 0 && modRM>>6 == 3 {
		s |= Of(numbers[modRM&7|highB])
	}
	if operands&inVVVV != 0 {
		s |= Of(numbers[vvvv])
	}
	return s
}

// prefixes holds the legacy prefixes of instructions (Intel SDM, volume 2, 2.1.1).
var prefixes = [256]bool{0x26: true, 0x2e: true, 0x36: true, 0x3e: true, 0x64: true, 0x65: true, 0x66: true, 0x67: true, 0xf0: true, 0xf2: true, 0xf3: true}

// Clobbers returns the general registers that a sequence of instructions may write, or all if an instruction is unknown. It skips a word in the code
// from which an indirect jump reads its target. Runtimes overwrite a site with such a jump, and put the word after it.
func Clobbers(code []byte) (s Set) {
	const word = 8
	words := map[int]bool{}
	for at := 0; at < len(code) && s != Every; {
		if words[at] {
			at += word
			continue
		}
		writes, inst := mayWrite(code[at:])
		s |= writes
		at += max(inst.Len, 1)
		if m, is := inst.Args[0].(x86asm.Mem); is && inst.Op == x86asm.JMP && m.Base == x86asm.RIP {
			words[at+int(m.Disp)] = true
		}
	}
	return s
}
