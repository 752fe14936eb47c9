package machine

import (
	"encoding/binary"
	"slices"
)

// RISCV64 is 64-bit RISC-V with the calling convention LP64D. The numbers are those of
// "RISC-V ABIs Specification", chapter "RISC-V DWARF Specification", "Dwarf Register
// Numbers"; names and what a callee preserves are in its chapter "Register
// Convention". gp and tp are the same in all of a thread's procedures.
//
// v0 to v31 are recorded at the widest that the vector extension allows, 65536 bits
// ("RISC-V V Vector Extension", section 2).
var RISCV64 = newArch(Arch{
	Name: "riscv64", Title: "riscv64", Pointer: 8, Order: binary.LittleEndian,
	SP: 2, FP: 8, PC: noNumber, Link: 1,
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
