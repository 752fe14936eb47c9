package machine

import (
	"encoding/binary"
	"slices"
)

// PPC64 (big-endian, ELFv1) and PPC64LE (ELFv2) are 64-bit Power. The numbers are
// those of "64-Bit ELF V2 ABI Specification: Power Architecture", section 2.4, "DWARF
// Definition", which compilers use under ELFv1 too, whose own document numbers lr and
// ctr differently; what a callee preserves is in section 2.2.2.1, "Register
// Roles", the same in both.
//
// f0 to f31 are recorded at their widest, the VSX registers vs0 to vs31, of which they
// are the first half. Of vs14 to vs31 a callee preserves that half alone, so that
// they do not count as preserved. It must keep r13, the thread's pointer, as it is.
//
// 1200 to 1231 are r0 to r31 again: the numbers of the registers of SPE, which no 64-bit
// processor has, and which LLVM's stack maps give for the low half of a general register
// (seen: an i32 argument of llc 14 to 22 is in register 1203).
var (
	PPC64   = newPPC64("ppc64", binary.BigEndian)
	PPC64LE = newPPC64("ppc64le", binary.LittleEndian)
)

func newPPC64(name string, order binary.ByteOrder) *Arch {
	return newArch(Arch{
		Name: name, Title: name, Pointer: 8, Order: order,
		SP: 1, FP: 31, PC: noNumber, Link: 65,
	}, slices.Concat(
		ppc64General(0),
		rows(32, "f", 0, 32, RegisterInfo{Size: 16, Class: Vector}),
		[]RegisterInfo{{65, "lr", 8, 0, Special}, {66, "ctr", 8, 0, Special}},
		rows(68, "cr", 0, 2, RegisterInfo{Size: 4, Class: Flags}),
		rows(70, "cr", 2, 3, RegisterInfo{Size: 4, Class: Flags, Kept: 4}),
		rows(73, "cr", 5, 3, RegisterInfo{Size: 4, Class: Flags}),
		[]RegisterInfo{{76, "xer", 8, 0, Special}},
		rows(77, "v", 0, 20, RegisterInfo{Size: 16, Class: Vector}),
		rows(97, "v", 20, 12, RegisterInfo{Size: 16, Class: Vector, Kept: 16}),
		[]RegisterInfo{{109, "vrsave", 4, 0, Special}},
		ppc64General(1200),
	), alias{"f", 16, "vs", 0})
}

func ppc64General(first DWARFReg) []RegisterInfo {
	list := rows(first, "r", 0, 32, RegisterInfo{Size: 8})
	list[1].Kept = 8
	for i := 13; i < len(list); i++ {
		list[i].Kept = 8
	}
	return list
}
