package cfi

import (
	"encoding/binary"
	"fmt"

	"example.com/reframe/internal/machine"
)

// Modes of encodings for x86-64.
const (
	amd64NoInfo    = 0x00000000
	amd64Frame     = 0x01000000 // pushq %rbp; movq %rsp, %rbp
	amd64Immediate = 0x02000000 // no frame pointer; the encoding has the size
	amd64Indirect  = 0x03000000 // no frame pointer; the code has the size
	amd64DWARF     = 0x04000000
)

// Fields of the two kinds of encodings.
const (
	amd64FrameBelow = 0x00ff0000 // for amd64Frame: distance in words from rbp down to the lowest slot
	amd64FrameSlots = 0x00007fff // for amd64Frame: five slots from there up, 3 bits each

	amd64Size        = 0x00ff0000 // size of the frame in words; for amd64Indirect, offset of that size from Start
	amd64Adjust      = 0x0000e000 // for amd64Indirect: words to add to that size
	amd64Count       = 0x00001c00 // number of pushed registers
	amd64Permutation = 0x000003ff // the pushed registers in order, encoded as a permutation
)

// amd64Saved lists the registers by their numbers in encodings, which start at 1; 0 means none.
var amd64Saved = [...]machine.DWARFReg{3, 12, 13, 14, 15, 6} // rbx, r12 to r15, rbp

// amd64 fills the row for e with the rules of libunwind's CompactUnwinder_x86_64.
func (e *CompactEntry) amd64(row *Row, memory machine.Memory) error {
	row.saved(machine.AMD64.Link, -8)
	switch e.Encoding & compactMode {
	case amd64NoInfo:
		if err := e.only(0); err != nil {
			return err
		}
		return ErrNoFDE
	case amd64Frame:
		return e.amd64Frame(row)
	case amd64Immediate:
		if err := e.only(amd64Size | amd64Count | amd64Permutation); err != nil {
			return err
		}
		return e.amd64Frameless(row, 8*int64(e.Encoding&amd64Size>>16))
	case amd64Indirect:
		size, err := e.amd64FrameSize(memory)
		if err != nil {
			return err
		}
		return e.amd64Frameless(row, size)
	case amd64DWARF:
		return ErrInFDE
	}
	return e.errorf("encoding %#08x: unknown mode %d of x86-64", e.Encoding, e.Encoding&compactMode>>24)
}

// amd64Frame fills the row of a function with a frame pointer, which is saved just below the return address.
func (e *CompactEntry) amd64Frame(row *Row) error {
	if err := e.only(amd64FrameBelow | amd64FrameSlots); err != nil {
		return err
	}
	row.CFA = CFARule{Kind: CFARegister, Register: machine.AMD64.FP, Offset: 16}
	row.saved(machine.AMD64.FP, -16)
	below := int64(e.Encoding & amd64FrameBelow >> 16)
	for slot := range int64(5) {
		n := e.Encoding >> (3 * slot) & 7
		if n == 0 {
			continue
		}
		// rbp must not be listed: it is saved at the address in rbp.
		if n > 5 {
			return e.errorf("encoding %#08x: register %d in slot %d", e.Encoding, n, slot)
		}
		reg := amd64Saved[n-1]
		if row.Rule(reg).Kind != RuleNone {
			return e.errorf("encoding %#08x: %s is saved twice", e.Encoding, machine.AMD64.RegisterName(reg))
		}
		if slot >= below {
			return e.errorf("encoding %#08x: slot %d of %d words below the frame pointer", e.Encoding, slot, below)
		}
		row.saved(reg, -16-8*(below-slot))
	}
	return nil
}

// amd64Frameless fills the row of a function without a frame pointer. size is the size of its frame, including the return address. The pushed
// registers are just below the return address.
func (e *CompactEntry) amd64Frameless(row *Row, size int64) error {
	regs, ok := permutation(e.Encoding&amd64Count>>10, e.Encoding&amd64Permutation)
	if !ok {
		return e.errorf("encoding %#08x: invalid permutation %d of %d registers", e.Encoding,
			e.Encoding&amd64Permutation, e.Encoding&amd64Count>>10)
	}
	if need := int64(8 * (len(regs) + 1)); size < need {
		return e.errorf("encoding %#08x: %d saved words in a frame of %d bytes", e.Encoding, len(regs)+1, size)
	}
	row.CFA = CFARule{Kind: CFARegister, Register: machine.AMD64.SP, Offset: size}
	for i, reg := range regs {
		row.saved(reg, int64(-8*(1+len(regs)-i)))
	}
	return nil
}

// permutation decodes n to count registers, the one at the lowest address first. It returns false if count or n is too large. n is a number in mixed
// radix. Each digit selects one of the remaining registers; the base of the digit is the count of those registers.
func permutation(count, n uint32) ([]machine.DWARFReg, bool) {
	const all = uint32(len(amd64Saved))
	if count > all {
		return nil, false
	}
	var digits [all]uint32
	for i := count; i > 0; i-- {
		base := all - (i - 1)
		digits[i-1], n = n%base, n/base
	}
	if n != 0 {
		return nil, false
	}
	left := append(make([]machine.DWARFReg, 0, all), amd64Saved[:]...)
	regs := make([]machine.DWARFReg, count)
	for i := range regs {
		d := digits[i]
		regs[i] = left[d]
		left = append(left[:d], left[d+1:]...)
	}
	return regs, true
}

// amd64FrameSize computes the size of the frame from the prologue of e: the immediate of its subq $imm32, %rsp, plus the pushed words.
func (e *CompactEntry) amd64FrameSize(memory machine.Memory) (int64, error) {
	if err := e.only(amd64Size | amd64Adjust | amd64Count | amd64Permutation); err != nil {
		return 0, err
	}
	at := machine.Addr(e.Encoding & amd64Size >> 16)
	var code [7]byte // 48 81 ec imm32
	opcode := at - 3
	switch {
	case e.Encoding&compactNotStart != 0:
		return 0, e.errorf("encoding %#08x: the frame size is in the prologue, and the range does not start there", e.Encoding)
	case at < 3 || at+4 > e.End-e.Start:
		return 0, e.errorf("encoding %#08x: no subq $imm32, %%rsp can have its operand at +%d of %v", e.Encoding, at, e.Start)
	case memory == nil:
		return 0, e.errorf("encoding %#08x: the frame size is in the code, which is not available", e.Encoding)
	}
	if err := memory.ReadMemory(code[:], e.Start+opcode); err != nil {
		return 0, &FormatError{e.Section, e.Offset, fmt.Errorf("encoding %#08x: the size of the frame is in the code: %w", e.Encoding, err)}
	}
	if code[0] != 0x48 || code[1] != 0x81 || code[2] != 0xec {
		return 0, e.errorf("encoding %#08x: no subq $imm32, %%rsp is at +%d of %v", e.Encoding, opcode, e.Start)
	}
	size := int64(int32(binary.LittleEndian.Uint32(code[3:])))
	if size < 0 || size%8 != 0 {
		return 0, e.errorf("encoding %#08x: subq $%d, %%rsp at +%d of %v allocates no frame", e.Encoding, size, opcode, e.Start)
	}
	return size + 8*int64(e.Encoding&amd64Adjust>>13), nil
}
