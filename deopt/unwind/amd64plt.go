package unwind

import (
	"encoding/binary"

	"example.com/reframe/internal/machine"
)

// The sizes of instructions in a procedure linkage table: jmp and push of a word in memory,
// push of a number, and the bnd before a jmp.
const (
	viaMemory  = 6
	pushNumber = 5
	bndPrefix  = 0xf2
)

// inPLT returns the step from an instruction of a procedure linkage table that is reached with more words on the stack than a function has on
// entry, or only by an indirect jump; nil for anything else (System V ABI, AMD64 supplement, figure 5.2). start is that of the entry.
func (w *walk) inPLT(f *Frame, start machine.Addr) *step {
	var b [16]byte
	code := readable(w.Memory, b[:], start)
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
	return &step{row: w.pushedRow(f.PC, words*int64(w.Arch.Pointer)), rule: FromCode} // it changes no register
}

// firstOfPLT returns how many words there are up to the CFA at an instruction of the first PLT entry, to which the other entries jump after they
// have pushed a number; 0 if the code is no such entry. The first entry pushes a word of the global offset table and jumps through the next word.
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

// lazyEntry is firstOfPLT for the other entries, past the jump that leads back to the next
// instruction until the function is bound.
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
