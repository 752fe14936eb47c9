package machine

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// S390X is z/Architecture. The numbers are those of "ELF Application Binary Interface s390x Supplement", "DWARF Register Number Mapping"; its section
// 1.2.1, "Registers", defines the callee-saved registers.
//
// f0 to f15 are the first half of the vector registers v0 to v15. The table gives them the width of those. Only this half of v8 to v15 is
// callee-saved. a0 and a1 hold the thread pointer.
//
// The CFA lies past the 160 bytes at the stack pointer that a caller reserves for its callees (section 1.2.2, "The Stack Frame"). Frames are linked
// only in code compiled with a back chain (gcc's -mbackchain), and the machine code does not show whether it was compiled so.
var S390X = newArch(Arch{
	Name: "s390x", Title: "s390x", Pointer: 8, Order: binary.BigEndian, Align: 2,
	SP: 15, FP: 11, PC: 65, Link: 14,
	CallerSP: -160, Calls: s390xCalls(), Trampolines: s390xSigreturns,
}, s390xRows(), alias{"f", 16, "v", 0})

func s390xRows() []RegisterInfo {
	list := slices.Concat(
		rows(0, "r", 0, 6, RegisterInfo{Size: 8}),
		rows(6, "r", 6, 8, RegisterInfo{Size: 8, Kept: 8}),
		[]RegisterInfo{{14, "r14", 8, 0, General}, {15, "r15", 8, 8, General}},
		rows(48, "a", 0, 2, RegisterInfo{Size: 4, Class: Special, Kept: 4}),
		rows(50, "a", 2, 14, RegisterInfo{Size: 4, Class: Special}),
	)
	for n := range 32 {
		number := s390xFloating(n)
		r := RegisterInfo{DWARFReg(16 + n), fmt.Sprintf("f%d", number), 16, 0, Vector}
		if number >= 8 && number < 16 {
			r.Kept = 8
		}
		if n >= 16 {
			r.DWARF, r.Name = DWARFReg(68+n-16), fmt.Sprintf("v%d", number)
		}
		list = append(list, r)
	}
	return list
}

// s390xFloating returns the register for the nth DWARF number of the floating-point or vector registers: in each group of eight the even ones come first.
func s390xFloating(n int) int { return n&^7 | n<<1&6 | n>>2&1 }

// s390xCalls returns the instructions that store the return address in r14 ("z/Architecture Principles of Operation", chapter 7). basr and bassm with
// register 0 do not branch.
func s390xCalls() Calls {
	forms := []CallForm{
		{6, 0xffff00000000, 0xc0e500000000}, // brasl
		{4, 0xffff0000, 0xa7e50000},         // bras
		{4, 0xfff00000, 0x4de00000},         // bas
	}
	forms = append(forms, nonzero(CallForm{2, 0xfff0, 0x0de0}, 0xf)...)                         // basr
	return Calls{binary.BigEndian, append(forms, nonzero(CallForm{2, 0xfff0, 0x0ce0}, 0xf)...)} // bassm
}

// s390xSigreturns lists svc __NR_rt_sigreturn and, for handlers installed without SA_SIGINFO, svc __NR_sigreturn. At the stack pointer are 160 bytes for the
// handler. Then follows the rest of the kernel's struct rt_sigframe (the instruction, siginfo_t and struct ucontext) or of struct sigframe (struct
// sigcontext). Both contain _sigregs of asm/sigcontext.h: the program status word, the general registers and the floating-point registers.
var s390xSigreturns = []Trampoline{
	{Code: []byte{0x0a, 0xad}, Saved: s390xSigregs(336)},
	{Code: []byte{0x0a, 0x77}, Saved: s390xSigregs(176)},
}

func s390xSigregs(at int64) map[DWARFReg]int64 {
	saved := words(0, 16, at+2*word, map[DWARFReg]int64{65: at + word})
	for n := range 16 {
		saved[DWARFReg(16+n)] = at + 216 + int64(word*s390xFloating(n))
	}
	return saved
}
