package machine

import (
	"encoding/binary"
	"slices"
)

// AMD64 is x86-64 with the System V calling convention. Register numbers are those of the ABI's AMD64 supplement, figure 3.36. LLVM's stack maps use the
// same numbers (measured: zmm16 to zmm31 are 67 to 82).
//
// Vector registers have their greatest width here, 64 bytes; a capture may have fewer bytes and marks the rest as unavailable. mm0 to mm7 are the low
// 8 bytes of st0 to st7; r16 to r31 are those of APX. Section 3.2.2, "The Stack Frame", defines how frames are linked.
var AMD64 = newArch(Arch{
	Name: "amd64", Title: "x86-64", Pointer: 8, Order: binary.LittleEndian, Align: 1,
	SP: 7, FP: 6, PC: 16, Link: 16, Vector: 16,
	Chain:       Chain{Base: 6, Linked: 0, Return: 8, CFA: 16},
	Trampolines: amd64Sigreturns,
}, amd64Rows(), alias{"xmm", 32, "ymm", 0}, alias{"xmm", 64, "zmm", 0})

func amd64Rows() []RegisterInfo {
	return slices.Concat(
		[]RegisterInfo{
			{0, "rax", 8, 0, General}, {1, "rdx", 8, 0, General}, {2, "rcx", 8, 0, General},
			{3, "rbx", 8, 8, General}, {4, "rsi", 8, 0, General}, {5, "rdi", 8, 0, General},
			{6, "rbp", 8, 8, General}, {7, "rsp", 8, 8, General},
		},
		rows(8, "r", 8, 4, RegisterInfo{Size: 8}),
		rows(12, "r", 12, 4, RegisterInfo{Size: 8, Kept: 8}),
		[]RegisterInfo{{16, "rip", 8, 0, Special}},
		rows(17, "xmm", 0, 16, RegisterInfo{Size: 64, Class: Vector}),
		rows(33, "st", 0, 8, RegisterInfo{Size: 10, Class: Vector}),
		rows(41, "mm", 0, 8, RegisterInfo{Size: 8, Class: Vector}),
		rows(67, "xmm", 16, 16, RegisterInfo{Size: 64, Class: Vector}),
		rows(118, "k", 0, 8, RegisterInfo{Size: 8, Class: Flags}),
		rows(130, "r", 16, 16, RegisterInfo{Size: 8}),
	)
}

// amd64Sigreturns lists the code that signal handlers return to. glibc, musl and Go's runtime use mov $__NR_rt_sigreturn,%rax; syscall; the form with
// %eax is shorter. The return has popped the first word of struct rt_sigframe (asm/sigframe.h of the kernel), so the stack pointer points to its struct
// ucontext (asm/ucontext.h, asm/sigcontext.h).
var amd64Sigreturns = []Trampoline{
	{Code: []byte{0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05}, Saved: amd64Saved},
	{Code: []byte{0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05}, Saved: amd64Saved},
}

var amd64Saved = words(8, 8, 40, map[DWARFReg]int64{
	5: 104, 4: 112, 6: 120, 3: 128, 1: 136, 0: 144, 2: 152, 7: 160, 16: 168,
})
