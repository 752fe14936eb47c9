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
var (
	PPC64   = newPPC64("ppc64", binary.BigEndian)
	PPC64LE = newPPC64("ppc64le", binary.LittleEndian)
)

func newPPC64(name string, order binary.ByteOrder) *Arch {
	return newArch(Arch{
		Name: name, Title: name, Pointer: 8, Order: order,
		SP: 1, FP: 31, PC: 65,
	}, slices.Concat(
		[]RegisterInfo{{0, "r0", 8, false, General}, {1, "r1", 8, true, General}},
		rows(2, "r", 2, 11, RegisterInfo{Size: 8}),
		rows(13, "r", 13, 19, RegisterInfo{Size: 8, Preserved: true}),
		rows(32, "f", 0, 32, RegisterInfo{Size: 16, Class: Vector}),
		[]RegisterInfo{{65, "lr", 8, false, Special}, {66, "ctr", 8, false, Special}},
		rows(68, "cr", 0, 2, RegisterInfo{Size: 4, Class: Flags}),
		rows(70, "cr", 2, 3, RegisterInfo{Size: 4, Class: Flags, Preserved: true}),
		rows(73, "cr", 5, 3, RegisterInfo{Size: 4, Class: Flags}),
		[]RegisterInfo{{76, "xer", 8, false, Special}},
		rows(77, "v", 0, 20, RegisterInfo{Size: 16, Class: Vector}),
		rows(97, "v", 20, 12, RegisterInfo{Size: 16, Class: Vector, Preserved: true}),
		[]RegisterInfo{{109, "vrsave", 4, false, Special}},
	), alias{"f", 16, "vs", 0})
}
