package unwind

import (
	"encoding/binary"

	"example.com/reframe/internal/machine"
)

// Sizes of instructions in a procedure linkage table: a jmp or push of a word in memory, and a push of a number; and the bnd prefix of a jmp.
const (
	viaMemory  = 6
	pushNumber = 5
	bndPrefix  = 0xf2
)

// inPLT returns the step from an instruction of a procedure linkage table (System V ABI, AMD64 supplement, figure 5.2) if earlier instructions of the
// table have pushed words. It returns nil for any other instruction. start is the start of the entry.
func (u *codeReader) inPLT(f *Frame, start machine.Addr) *step {
	var b [16]byte
	code := readable(u.Memory, b[:], start)
	if len(code) < len(b) || f.Return {
		return nil
	}
	words := firstOfPLT(code, f.PC-start)
	if words == 0 {
		words = lazyEntry(code, f.PC-start)
	}
	if words == 0 {
		return nil
	}
	return &step{row: u.pushedRow(f.PC, words*int64(u.Arch.Pointer)), rule: FromCode} // the PLT changes no register
}

// firstOfPLT returns the number of words below the CFA at an instruction of the first PLT entry, or 0 for other code. Other entries jump to the first
// one after they have pushed a number. It pushes a word of the global offset table and jumps through the next word.
func firstOfPLT(code []byte, at machine.Addr) int64 {
	jump := viaMemory
	if code[jump] == bndPrefix {
		jump++
	}
	slot := func(at int) int32 { return int32(binary.LittleEndian.Uint32(code[at+2:])) + int32(at) + viaMemory }
	switch {
	case code[0] != 0xff || code[1] != 0x35 || code[jump] != 0xff || code[jump+1] != 0x25 || slot(jump) != slot(0)+8:
		return 0
	case at == 0:
		return 2
	case at == viaMemory:
		return 3
	}
	return 0
}

// lazyEntry does the same as firstOfPLT for the other entries, after their jump. Until the function is bound, that jump leads to the next
// instruction.
func lazyEntry(code []byte, at machine.Addr) int64 {
	switch {
	case code[0] != 0xff || code[1] != 0x25 || code[viaMemory] != 0x68 || code[viaMemory+pushNumber] != 0xe9:
		return 0
	case at == viaMemory:
		return 1
	case at == viaMemory+pushNumber:
		return 2
	}
	return 0
}
