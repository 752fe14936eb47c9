package amd64

import (
	"golang.org/x/arch/x86/x86asm"

	"example.com/reframe/internal/machine"
)

// Decode decodes the instruction that code starts with. Its Len is that of [Length], 0 where that is not known. known reports whether the other
// fields are known too. An instruction that is only a hint to the processor is a NOP here.
func Decode(code []byte) (inst x86asm.Inst, known bool) {
	n := Length(code)
	if n == 0 {
		return x86asm.Inst{}, false
	}
	// Instructions that x86asm decodes wrongly. Compilers write the first at every place that an indirect jump may lead to, and the second before
	// most calls out of AVX code.
	switch {
	case n == 4 && [4]byte(code) == [4]byte{0xf3, 0x0f, 0x1e, 0xfa}: // endbr64
		return x86asm.Inst{Op: x86asm.NOP, Len: n}, true
	case n == 3 && code[0] == 0xc5 && code[2] == 0x77: // vzeroupper, vzeroall
		return x86asm.Inst{Op: x86asm.NOP, Len: n}, true
	}
	inst, err := guarded(code[:n])
	if err != nil || inst.Len != n || inst.Op == x86asm.RDRAND && inst.Args[0] == nil { // which it loses behind a REX.W
		return x86asm.Inst{Len: n}, false
	}
	for i, arg := range inst.Args {
		if m, ok := arg.(x86asm.Mem); ok && m.Base != 0 {
			m.Disp = int64(int32(m.Disp)) // which it extends with zeros
			inst.Args[i] = m
		}
	}
	return inst, true
}

// guarded calls x86asm, which is not known to panic and not promised not to.
func guarded(code []byte) (inst x86asm.Inst, err error) {
	defer func() {
		if r := recover(); r != nil {
			inst = x86asm.Inst{}
		}
	}()
	return x86asm.Decode(code, 64)
}

// Read decodes the instruction at an address. The error is that of the memory there, where not even one byte can be read.
func Read(m machine.Memory, at machine.Addr) (inst x86asm.Inst, known bool, err error) {
	var b [Longest]byte
	code, err := machine.ReadSome(m, at, b[:]) // what can be read may end right behind the instruction
	if err != nil {
		return x86asm.Inst{}, false, err
	}
	inst, known = Decode(code)
	return inst, known, nil
}

// IsFiller reports whether an instruction, as [Decode] returns it, does nothing and only takes up room. Hints to the processor are not fillers.
func IsFiller(inst x86asm.Inst) bool { return inst.Op == x86asm.NOP && inst.Opcode != 0 }

// Register returns the general register that r is, or is a part of, and how many bytes of
// it r is; ok is false for any other register. AH is the second byte of rax, and one byte.
func Register(r x86asm.Reg) (reg machine.DWARFReg, size int, ok bool) {
	switch {
	case r >= x86asm.RAX && r <= x86asm.R15:
		return numbers[r-x86asm.RAX], 8, true
	case r >= x86asm.EAX && r <= x86asm.R15L:
		return numbers[r-x86asm.EAX], 4, true
	case r >= x86asm.AX && r <= x86asm.R15W:
		return numbers[r-x86asm.AX], 2, true
	case r >= x86asm.SPB && r <= x86asm.R15B:
		return numbers[r-x86asm.SPB+4], 1, true
	case r >= x86asm.AL && r <= x86asm.BH:
		return numbers[(r-x86asm.AL)%4], 1, true
	}
	return 0, 0, false
}

// numbers are DWARF's of the general registers, in the processor's order: rax, rcx, rdx,
// rbx, rsp, rbp, rsi, rdi, r8 to r15 (System V ABI, AMD64 supplement, figure 3.36).
var numbers = [16]machine.DWARFReg{0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15}
