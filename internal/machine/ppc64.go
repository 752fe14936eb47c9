package machine

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// PPC64 (big-endian, ELFv1) and PPC64LE (ELFv2) are 64-bit Power. The numbers are those of "64-Bit ELF V2 ABI Specification: Power Architecture", section
// 2.4, "DWARF Definition". Compilers use them under ELFv1 too, although its own document numbers lr and ctr differently. Section 2.2.2.1, "Register Roles",
// defines the callee-saved registers; they are the same in both ABIs.
//
// f0 to f31 are the first half of the VSX registers vs0 to vs31, the half with bit 0 (Power ISA, "VSX Registers"). The table gives them the width of
// those. The table puts this half first in both byte orders, although a little-endian store puts it last. Only this half of vs14 to vs31 is
// callee-saved. A callee must preserve r13, the thread pointer.
//
// Frames are linked by the back chain, which every function with a frame keeps. The return address is saved in the caller's frame (section 2.2.3.1,
// "General Stack Frame Requirements"); in ELFv1 too it is 16 bytes from the frame's start.
//
// 1200 to 1231 are r0 to r31 again. They are the numbers of the SPE registers, which no 64-bit processor has. LLVM's stack maps use them for the low half
// of a general register (seen: llc 14 to 22 put an i32 argument in register 1203).
var (
	PPC64   = newPPC64("ppc64", binary.BigEndian)
	PPC64LE = newPPC64("ppc64le", binary.LittleEndian)
)

func newPPC64(name string, order binary.ByteOrder) *Arch {
	return newArch(Arch{
		Name: name, Title: name, Pointer: 8, Order: order, Align: 4,
		SP: 1, FP: 31, PC: noNumber, Link: 65,
		Calls:       Calls{order, ppc64Calls},
		Unread:      ppc64Conditions(),
		Single:      ppc64Single(order),
		Chain:       Chain{Base: 1, Linked: 0, Return: 16},
		Trampolines: ppc64Sigreturns(order),
	}, slices.Concat(
		ppc64General(0),
		rows(32, "f", 0, 14, RegisterInfo{Size: 16, Class: Vector}),
		rows(46, "f", 14, 18, RegisterInfo{Size: 16, Kept: 8, Class: Vector}),
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

// ppc64Conditions returns the fields of the condition register with the reason why they cannot be read. A value in a field is one of its four bits. LLVM
// numbers the bits of a field (lt, gt, eq, un: SubRegIndex of PPCRegisterInfo.td), but not by their position.
func ppc64Conditions() map[DWARFReg]string {
	unread := map[DWARFReg]string{}
	for n := range 8 {
		unread[DWARFReg(68+n)] = fmt.Sprintf("it is one bit of cr%d, and the record does not give its number", n)
	}
	return unread
}

// ppc64Single returns the conversion of f0 to f31, which hold a float as a double: the bytes that stfs stores (Power ISA 3.1, book I, section 4.6.2,
// "Floating-Point Store Instructions"). It does no arithmetic, because that would quiet a signalling NaN.
func ppc64Single(order binary.ByteOrder) func(DWARFReg, []byte) ([]byte, bool) {
	return func(reg DWARFReg, raw []byte) ([]byte, bool) {
		if reg < 32 || reg > 63 || len(raw) != 8 {
			return nil, false
		}
		d := order.Uint64(raw)
		sign, exponent, fraction := d>>63, d>>52&0x7ff, d&(1<<52-1)
		out := uint32(d>>62)<<30 | uint32(d>>29)&(1<<30-1)
		if exponent >= 874 && exponent <= 896 { // denormal as a float
			out = uint32(sign)<<31 | uint32((1<<52|fraction)>>(29+897-exponent))
		}
		b := make([]byte, 4)
		order.PutUint32(b, out)
		return b, true
	}
}

func ppc64General(first DWARFReg) []RegisterInfo {
	list := rows(first, "r", 0, 32, RegisterInfo{Size: 8})
	list[1].Kept = 8
	for i := 13; i < len(list); i++ {
		list[i].Kept = 8
	}
	return list
}

// ppc64Calls lists the branches that set the link register (Power ISA 3.1, book I, section 2.4, "Branch Instructions").
var ppc64Calls = []CallForm{
	{4, 0xfc000001, 0x48000001}, // bl, bla
	{4, 0xfc000001, 0x40000001}, // bcl, bcla
	{4, 0xfc0007ff, 0x4c000021}, // bclrl
	{4, 0xfc0007ff, 0x4c000421}, // bcctrl
	{4, 0xfc0007ff, 0x4c000461}, // bctarl
}

// ppc64Sigreturns lists the code that signal handlers return to, in the vdso, or on the stack if there is no vdso: addi r1,r1,128; li r0,__NR_rt_sigreturn;
// sc. 128 bytes above the stack pointer is struct ucontext of asm/ucontext.h. It contains the general registers in the order of struct pt_regs
// (asm/ptrace.h) and the floating-point registers. QEMU's user mode omits the addi and puts struct ucontext 16 bytes higher, as the kernel does on ppc.
func ppc64Sigreturns(order binary.ByteOrder) []Trampoline {
	const add, load, call = 0x38210080, 0x380000ac, 0x44000002
	return []Trampoline{ppc64Sigreturn(order, 128, add, load, call), ppc64Sigreturn(order, 144, load, call)}
}

func ppc64Sigreturn(order binary.ByteOrder, context int64, code ...uint32) Trampoline {
	registers := context + 232
	t := Trampoline{Code: make([]byte, 4*len(code)), Saved: words(0, 32, registers, map[DWARFReg]int64{
		noNumber: registers + 32*word, 66: registers + 35*word, 65: registers + 36*word, 76: registers + 37*word,
	})}
	maps.Copy(t.Saved, words(32, 32, registers+48*word, nil)) // f0 to f31, in elf_fpregset_t
	for i, c := range code {
		order.PutUint32(t.Code[4*i:], c)
	}
	return t
}
