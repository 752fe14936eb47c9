package machine

import (
	"encoding/binary"
	"slices"
)

// LOONG64 is 64-bit LoongArch with the calling convention LP64D. The numbers are those of "DWARF for the LoongArch Architecture", "Register Numbers".
// Names and callee-saved registers are in "Procedure Call Standard for the LoongArch Architecture", "Register Convention". tp and r21 have the same value
// in all frames of a thread.
//
// fa0 to fs7 are the low 8 bytes of the LASX registers xr0 to xr31. The table gives them the width of those. Only these bytes of fs0 to fs7 are
// callee-saved. Frames are linked as gcc and LLVM do it; calls are those of "LoongArch Reference Manual", volume 1, section "Branch Instructions".
var LOONG64 = newArch(Arch{
	Name: "loong64", Title: "loongarch64", Pointer: 8, Order: binary.LittleEndian, Align: 4, Fixed: true,
	SP: 3, FP: 22, PC: noNumber, Link: 1,
	Calls: Calls{binary.LittleEndian, []CallForm{
		{4, 0xfc000000, 0x54000000}, // bl
		{4, 0xfc00001f, 0x4c000001}, // jirl ra
	}},
	Chain: Chain{Base: 22, Linked: -16, Return: -8, CFA: 0},
}, slices.Concat(
	[]RegisterInfo{
		{0, "zero", 8, 8, General}, {1, "ra", 8, 0, General}, {2, "tp", 8, 8, General},
		{3, "sp", 8, 8, General},
	},
	rows(4, "a", 0, 8, RegisterInfo{Size: 8}),
	rows(12, "t", 0, 9, RegisterInfo{Size: 8}),
	[]RegisterInfo{{21, "r21", 8, 8, General}, {22, "fp", 8, 8, General}},
	rows(23, "s", 0, 9, RegisterInfo{Size: 8, Kept: 8}),
	rows(32, "fa", 0, 8, RegisterInfo{Size: 32, Class: Vector}),
	rows(40, "ft", 0, 16, RegisterInfo{Size: 32, Class: Vector}),
	rows(56, "fs", 0, 8, RegisterInfo{Size: 32, Kept: 8, Class: Vector}),
),
	alias{"fa", 16, "vr", 0}, alias{"ft", 16, "vr", 8}, alias{"fs", 16, "vr", 24},
	alias{"fa", 32, "xr", 0}, alias{"ft", 32, "xr", 8}, alias{"fs", 32, "xr", 24})
