package machine

import (
	"encoding/binary"
	"slices"
)

// ARM64 and ARM64BE are aarch64 in its two byte orders. The numbers are those of
// "DWARF for the Arm 64-bit Architecture" (AADWARF64), section "DWARF register
// names"; what a callee preserves is in AAPCS64, "Register use in the AAPCS64
// standard". Of v8 to v15 it preserves the low 8 bytes alone, so that they do not
// count as preserved here.
//
// z0 to z31 (whose low 16 bytes are v0 to v31) and p0 to p15 are those of SVE, at the
// widest that it allows: 2048 bits, and a bit for each byte of that.
var (
	ARM64   = newARM64("arm64", "aarch64", binary.LittleEndian)
	ARM64BE = newARM64("arm64be", "aarch64 big-endian", binary.BigEndian)
)

func newARM64(name, title string, order binary.ByteOrder) *Arch {
	return newArch(Arch{
		Name: name, Title: title, Pointer: 8, Order: order,
		SP: 31, FP: 29, PC: 32, Link: 30,
	}, slices.Concat(
		rows(0, "x", 0, 19, RegisterInfo{Size: 8}),
		rows(19, "x", 19, 11, RegisterInfo{Size: 8, Kept: 8}),
		[]RegisterInfo{{30, "x30", 8, 0, General}, {31, "sp", 8, 8, General}},
		rows(48, "p", 0, 16, RegisterInfo{Size: 32, Class: Flags}),
		rows(64, "v", 0, 32, RegisterInfo{Size: 16, Class: Vector}),
		rows(96, "z", 0, 32, RegisterInfo{Size: 256, Class: Vector}),
	),
		alias{"v", 1, "b", 0}, alias{"v", 2, "h", 0}, alias{"v", 4, "s", 0}, alias{"v", 8, "d", 0}, alias{"v", 16, "q", 0},
		alias{"x", 4, "w", 0}, alias{"sp", 4, "wsp", 0})
}
