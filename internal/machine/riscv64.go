package machine

import (
	"encoding/binary"
	"slices"
)

// RISCV64 is 64-bit RISC-V with the calling convention LP64D. The numbers are those of "RISC-V ABIs Specification", chapter "RISC-V DWARF Specification",
// "Dwarf Register Numbers". Names and callee-saved registers are in its chapter "Register Convention". gp and tp have the same value in all frames of a
// thread. Its section "Frame Pointer Convention" defines how frames are linked. Functions with a variable number of arguments depart from it: gcc and LLVM
// set their frame pointer below the registers that they save next to the CFA.
//
// v0 to v31 have the greatest width that the vector extension allows, 65536 bits ("RISC-V V Vector Extension", section 2).
var RISCV64 = newArch(Arch{
	Name: "riscv64", Title: "riscv64", Pointer: 8, Order: binary.LittleEndian, Align: 2,
	SP: 2, FP: 8, PC: noNumber, Link: 1,
	Calls:       riscv64Calls(),
	Chain:       Chain{Base: 8, Linked: -16, Return: -8, CFA: 0},
	Trampolines: []Trampoline{riscv64Sigreturn},
}, slices.Concat(
	[]RegisterInfo{
		{0, "zero", 8, 8, General}, {1, "ra", 8, 0, General}, {2, "sp", 8, 8, General},
		{3, "gp", 8, 8, General}, {4, "tp", 8, 8, General},
	},
	rows(5, "t", 0, 3, RegisterInfo{Size: 8}),
	rows(8, "s", 0, 2, RegisterInfo{Size: 8, Kept: 8}),
	rows(10, "a", 0, 8, RegisterInfo{Size: 8}),
	rows(18, "s", 2, 10, RegisterInfo{Size: 8, Kept: 8}),
	rows(28, "t", 3, 4, RegisterInfo{Size: 8}),
	rows(32, "ft", 0, 8, RegisterInfo{Size: 8, Class: Vector}),
	rows(40, "fs", 0, 2, RegisterInfo{Size: 8, Class: Vector, Kept: 8}),
	rows(42, "fa", 0, 8, RegisterInfo{Size: 8, Class: Vector}),
	rows(50, "fs", 2, 10, RegisterInfo{Size: 8, Class: Vector, Kept: 8}),
	rows(60, "ft", 8, 4, RegisterInfo{Size: 8, Class: Vector}),
	rows(96, "v", 0, 32, RegisterInfo{Size: 8192, Class: Vector}),
))

// riscv64Calls returns the instructions that store the return address in ra ("The RISC-V Instruction Set Manual", volume I, section "Unconditional Jumps",
// and for 2-byte instructions "Control Transfer Instructions" of the C extension, where rs1 0 encodes ebreak).
func riscv64Calls() Calls {
	forms := []CallForm{
		{4, 0x00000fff, 0x000000ef}, // jal ra
		{4, 0x00007fff, 0x000000e7}, // jalr ra
	}
	return Calls{binary.LittleEndian, append(forms, nonzero(CallForm{2, 0xf07f, 0x9002}, 0x0f80)...)} // c.jalr
}

// riscv64Sigreturn is in the vdso and in musl: li a7,__NR_rt_sigreturn; ecall. The stack pointer points to the kernel's struct rt_sigframe: siginfo_t and
// struct ucontext (asm/ucontext.h). That contains struct user_regs_struct of asm/ptrace.h, pc first, aligned to 16 bytes, and then struct
// __riscv_d_ext_state.
var riscv64Sigreturn = Trampoline{
	Code:  []byte{0x93, 0x08, 0xb0, 0x08, 0x73, 0x00, 0x00, 0x00},
	Saved: words(1, 31, 312, words(32, 32, 560, map[DWARFReg]int64{noNumber: 304})),
}
