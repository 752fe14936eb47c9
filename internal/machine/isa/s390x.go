package isa

import "encoding/binary"

// s390xLength decodes the length from the two high bits ("z/Architecture Principles of Operation", "Instruction Formats").
func s390xLength(code []byte, _ binary.ByteOrder) int {
	if len(code) < 2 {
		return 0
	}
	return [...]int{2, 4, 4, 6}[code[0]>>6]
}

// s390xJumps holds the relative branches that do not save a return address ("z/Architecture Principles of Operation", chapter 7). It omits masks of 0,
// which are nops.
var s390xJumps = s390xBranches()

func s390xBranches() (list []jump) {
	half := func(low int) func(uint64) int64 {
		return func(w uint64) int64 { return 2 * signed(bits(w, low, 16), 16) }
	}
	word := func(w uint64) int64 { return 2 * signed(w, 32) }
	for m := uint64(1); m < 16; m++ {
		list = append(list, jump{form(4, 0xffff0000, 0xa7040000|m<<20), half(0)}, // brc
			jump{form(6, 0xffff00000000, 0xc00400000000|m<<36), word}) // brcl
	}
	for _, v := range []uint64{0xa7060000, 0xa7070000} { // brct, brctg
		list = append(list, jump{form(4, 0xff0f0000, v), half(0)})
	}
	for _, v := range []uint64{0x84000000, 0x85000000} { // brxh, brxle
		list = append(list, jump{form(4, 0xff000000, v), half(0)})
	}
	list = append(list, jump{form(6, 0xff0f00000000, 0xcc0600000000), word}) // brcth
	// brxhg, brxlg; cgrj, clgrj, crj, clrj; cgij, clgij, cij, clij
	for _, v := range []uint64{0x44, 0x45, 0x64, 0x65, 0x76, 0x77, 0x7c, 0x7d, 0x7e, 0x7f} {
		list = append(list, jump{form(6, 0xff00000000ff, 0xec0000000000|v), half(16)})
	}
	return list
}

// s390xPatchpoint recognizes the code that SystemZAsmPrinter::LowerPATCHPOINT writes: llilf of the target's low half, iihf of its high half if that is not
// 0, and basr %r14. An ordinary call of a number never has iihf. It has llilf only for numbers that lgfi would sign-extend and llilh cannot load; for
// these numbers the two calls are indistinguishable, and s390xPatchpoint returns 0.
func s390xPatchpoint(t *table, code []byte) int {
	w, n := t.word(code)
	if n != 6 || w&0xff0f00000000 != 0xc00f00000000 {
		return 0
	}
	r := bits(w, 36, 4)
	low := form(6, 0xffff00000000, 0xc00f00000000|r<<36)
	high := form(6, 0xffff00000000, 0xc00800000000|r<<36)
	call := form(2, 0xffff, 0x0de0|r)
	switch n := t.all(code, low, high, call); {
	case r == 0: // basr with register 0 does not branch
		return 0
	case n != 0:
		return n
	case bits(w, 31, 1) == 1 && bits(w, 0, 16) != 0:
		return 0
	}
	return t.all(code, low, call)
}
