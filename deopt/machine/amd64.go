package machine

import (
	"encoding/binary"
	"fmt"
)

// AMD64 is x86-64 with the System V calling convention. The numbers are those
// of the ABI's AMD64 supplement, figure 3.36, which LLVM's stack maps use too
// (measured: zmm16 to zmm31 are 67 to 82).
//
// A vector register is recorded at its widest here, 64 bytes; a capture may
// know fewer of them and says so for the rest.
var AMD64 = newArch(Arch{
	Name: "amd64", Title: "x86-64", Pointer: 8, Order: binary.LittleEndian,
	SP: 7, FP: 6, PC: 16,
}, amd64Rows())

func amd64Rows() []RegisterInfo {
	rows := []RegisterInfo{
		{0, "rax", 8, false}, {1, "rdx", 8, false}, {2, "rcx", 8, false}, {3, "rbx", 8, true},
		{4, "rsi", 8, false}, {5, "rdi", 8, false}, {6, "rbp", 8, true}, {7, "rsp", 8, true},
		{8, "r8", 8, false}, {9, "r9", 8, false}, {10, "r10", 8, false}, {11, "r11", 8, false},
		{12, "r12", 8, true}, {13, "r13", 8, true}, {14, "r14", 8, true}, {15, "r15", 8, true},
		{16, "rip", 8, false},
	}
	for i := range 16 {
		rows = append(rows, RegisterInfo{DWARFReg(17 + i), fmt.Sprintf("xmm%d", i), 64, false})
	}
	for i := range 8 {
		rows = append(rows, RegisterInfo{DWARFReg(33 + i), fmt.Sprintf("st%d", i), 10, false})
	}
	for i := range 16 {
		rows = append(rows, RegisterInfo{DWARFReg(67 + i), fmt.Sprintf("xmm%d", 16+i), 64, false})
	}
	for i := range 8 {
		rows = append(rows, RegisterInfo{DWARFReg(118 + i), fmt.Sprintf("k%d", i), 8, false})
	}
	return rows
}
