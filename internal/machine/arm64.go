package machine

import (
	"encoding/binary"
	"slices"
)

// ARM64 and ARM64BE are aarch64 in its two byte orders. Register numbers are those of "DWARF for the Arm 64-bit Architecture" (AADWARF64), section "DWARF
// register names". AAPCS64 defines the callee-saved registers in "Register use in the AAPCS64 standard", and how frames are linked in "The Frame Pointer":
// the frame record may lie anywhere in the frame and does not determine the CFA.
//
// The low 8 bytes of v8 to v15 (d8 to d15) are callee-saved. In little-endian order these are the first 8 bytes in memory. In big-endian order they are
// not, so the table marks none of these registers as callee-saved.
//
// Pointer authentication uses the address bits above the 48 that Linux gives programs (kernel documentation, "Memory Layout on AArch64 Linux").
//
// z0 to z31 (whose low 16 bytes are v0 to v31) and p0 to p15 are those of SVE, at the greatest width that it allows: 2048 bits, and one bit for each of
// these bytes.
var (
	ARM64   = newARM64("arm64", "aarch64", binary.LittleEndian)
	ARM64BE = newARM64("arm64be", "aarch64 big-endian", binary.BigEndian)
)

// ARM64VG is the pseudo-register VG of AADWARF64: the number of 8-byte granules in a vector of SVE.
const ARM64VG DWARFReg = 46

func newARM64(name, title string, order binary.ByteOrder) *Arch {
	low := word
	if order == binary.ByteOrder(binary.BigEndian) {
		low = 0
	}
	return newArch(Arch{
		Name: name, Title: title, Pointer: 8, Order: order, Align: 4, Fixed: true,
		SP: 31, FP: 29, PC: 32, Link: 30, Constant: []DWARFReg{ARM64VG},
		Calls: arm64Calls, Code: 1<<48 - 1,
		// For a value of 0, LLVM may record the zero register (AArch64RegisterInfo.td: WZR, XZR and SP all have DwarfRegNum 31).
		Unread:      map[DWARFReg]string{31: "register 31 is sp or the zero register, and the record does not distinguish them"},
		Chain:       Chain{Base: 29, Linked: 0, Return: 8, NoCFA: true},
		Trampolines: []Trampoline{arm64Sigreturn},
	}, slices.Concat(
		rows(0, "x", 0, 19, RegisterInfo{Size: 8}),
		rows(19, "x", 19, 11, RegisterInfo{Size: 8, Kept: 8}),
		[]RegisterInfo{{30, "x30", 8, 0, General}, {31, "sp", 8, 8, General}},
		[]RegisterInfo{{ARM64VG, "vg", 8, 0, Flags}},
		rows(48, "p", 0, 16, RegisterInfo{Size: 32, Class: Flags}),
		rows(64, "v", 0, 8, RegisterInfo{Size: 16, Class: Vector}),
		rows(72, "v", 8, 8, RegisterInfo{Size: 16, Kept: low, Class: Vector}),
		rows(80, "v", 16, 16, RegisterInfo{Size: 16, Class: Vector}),
		rows(96, "z", 0, 32, RegisterInfo{Size: 256, Class: Vector}),
	),
		alias{"v", 1, "b", 0}, alias{"v", 2, "h", 0}, alias{"v", 4, "s", 0}, alias{"v", 8, "d", 0}, alias{"v", 16, "q", 0},
		alias{"x", 4, "w", 0}, alias{"sp", 4, "wsp", 0})
}

// arm64Calls lists the calls of "Arm Architecture Reference Manual for A-profile architecture", C6.2. Instructions are little-endian in both data orders.
var arm64Calls = Calls{binary.LittleEndian, []CallForm{
	{4, 0xfc000000, 0x94000000}, // bl
	{4, 0xfffffc1f, 0xd63f0000}, // blr
	{4, 0xfffffc1f, 0xd63f081f}, // blraaz
	{4, 0xfffffc1f, 0xd63f0c1f}, // blrabz
	{4, 0xfffffc00, 0xd73f0800}, // blraa
	{4, 0xfffffc00, 0xd73f0c00}, // blrab
}}

// arm64Sigreturn is in the vdso and in musl: mov x8,#__NR_rt_sigreturn; svc #0. The stack pointer points to the kernel's struct rt_sigframe: siginfo_t
// and struct ucontext, which contains struct sigcontext of asm/sigcontext.h.
var arm64Sigreturn = Trampoline{
	Code:  []byte{0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4},
	Saved: words(0, 32, 312, map[DWARFReg]int64{32: 568}), // sp follows x30
}
