package isa

import (
	"encoding/binary"

	"example.com/reframe/internal/machine"
)

// ppcLength returns 8 for an instruction whose primary opcode is 1, the prefix of another (Power ISA 3.1, book I, section 1.6), and otherwise 4.
func ppcLength(code []byte, order binary.ByteOrder) int {
	switch {
	case len(code) < 4:
		return 0
	case order.Uint32(code)>>26 == 1:
		return 8
	}
	return 4
}

// ppcJumps holds the relative jumps that do not set the link register (Power ISA 3.1, book I, section 2.4, "Branch Instructions").
var ppcJumps = []jump{
	{form(4, 0xfc000003, 0x48000000), func(w uint64) int64 { return signed(w&0x3fffffc, 26) }}, // b
	{form(4, 0xfc000003, 0x40000000), func(w uint64) int64 { return signed(w&0xfffc, 16) }},    // bc
}

// These are the instructions of [ppcPatchpoint], with 0 in the register fields.
const (
	ppcLi        = 0x38000000 // li RT,SI
	ppcRldic     = 0x7800040a // rldic RA,RS,32,16
	ppcOris      = 0x64000000 // oris RA,RS,UI
	ppcOri       = 0x60000000 // ori RA,RS,UI
	ppcSaveTOC   = 0xf8410000 // std r2,DS(r1)
	ppcLoadTOC   = 0xe8400008 // ld r2,8(RA)
	ppcLoadEntry = 0xe8000000 // ld RT,0(RA)
	ppcMtctr     = 0x7c0903a6 // mtctr RS
	ppcBctrl     = 0x4e800421
)

// ppcPatchpoint recognizes the code that PPCAsmPrinter::LowerPATCHPOINT writes. It builds the target from four parts, saves r2, reads the target's
// descriptor under ELFv1, and calls through ctr. Code that restores r2 follows the call. An ordinary call of a number builds the target in another way.
func ppcPatchpoint(t *table, code []byte) int {
	r := uint64(0)
	if len(code) >= 4 {
		r = bits(t.arch.Calls.Word(code[:4]), 21, 5)
	}
	source, base := r<<21, r<<16 // bit positions of the fields RS/RT and RA
	const exact, upper = 0xffffffff, 0xffff0000
	saved, descriptor := uint64(24), []machine.CallForm(nil)
	if t.arch == machine.PPC64 {
		saved, descriptor = 40, []machine.CallForm{form(4, exact, ppcLoadTOC|base), form(4, exact, ppcLoadEntry|source|base)}
	}
	forms := append([]machine.CallForm{
		form(4, upper, ppcLi|source), form(4, exact, ppcRldic|source|base), form(4, upper, ppcOris|source|base),
		form(4, upper, ppcOri|source|base), form(4, exact, ppcSaveTOC|saved),
	}, descriptor...)
	return t.all(code, append(forms, form(4, exact, ppcMtctr|source), form(4, exact, ppcBctrl))...)
}
