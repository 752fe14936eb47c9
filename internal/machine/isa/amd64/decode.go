package amd64

import (
	"golang.org/x/arch/x86/x86asm"

	"example.com/reframe/internal/machine"
)

// Decode decodes the first instruction in code. Its Len is the result of [Length]. known reports whether the other fields are valid. An instruction
// that is only a hint to the processor is returned as a NOP.
func Decode(code []byte) (inst x86asm.Inst, known bool) {
	n := Length(code)
	if n == 0 {
		return x86asm.Inst{}, false
	}
	// x86asm decodes these instructions wrongly. Compilers write endbr64 at the targets of indirect jumps, and vzeroupper before most calls from AVX code.
	switch {
	case n == 4 && [4]byte(code) == [4]byte{0xf3, 0x0f, 0x1e, 0xfa}: // endbr64
		return x86asm.Inst{Op: x86asm.NOP, Len: n}, true
	case n == 3 && code[0] == 0xc5 && code[2] == 0x77: // vzeroupper, vzeroall
		return x86asm.Inst{Op: x86asm.NOP, Len: n}, true
	}
	inst, err := guarded(code[:n])
	if err != nil || inst.Len != n || inst.Op == x86asm.RDRAND && inst.Args[0] == nil { // x86asm loses the operand of RDRAND after a REX.W
		return x86asm.Inst{Len: n}, false
	}
	for i, arg := range inst.Args {
		if m, ok := arg.(x86asm.Mem); ok && m.Base != 0 {
			m.Disp = int64(int32(m.Disp)) // x86asm zero-extends it
			inst.Args[i] = m
		}
	}
	return inst, true
}

// guarded calls x86asm and recovers from panics, which its documentation does not rule out.
func guarded(code []byte) (inst x86asm.Inst, err error) {
	defer func() {
		if r := recover(); r != nil {
			inst = x86asm.Inst{}
		}
	}()
	return x86asm.Decode(code, 64)
}

// Read decodes the instruction at an address. It returns an error only if not even one byte can be read there.
func Read(m machine.Memory, at machine.Addr) (inst x86asm.Inst, known bool, err error) {
	var b [Longest]byte
	code, err := machine.ReadSome(m, at, b[:]) // readable memory may end right after the instruction
	if err != nil {
		return x86asm.Inst{}, false, err
	}
	inst, known = Decode(code)
	return inst, known, nil
}

// IsFiller reports whether an instruction from [Decode] is padding that has no effect. Hints to the processor are not fillers.
func IsFiller(inst x86asm.Inst) bool { return inst.Op == x86asm.NOP && inst.Opcode != 0 }

// Register returns the general register that contains r, and the size of r in bytes. ok is false for other registers. AH counts as one byte of rax.
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

// numbers maps the processor's numbers of general registers to DWARF's: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15 (System V ABI, AMD64 supplement,
// figure 3.36).
var numbers = [16]machine.DWARFReg{0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15}
