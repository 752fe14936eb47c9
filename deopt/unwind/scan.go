package unwind

import (
	"errors"
	"fmt"

	"reframe/deopt/machine"
)

// scanned is how far up a stack a return address is looked for, and scanChunk how much of it
// is read at once; in bytes.
const (
	scanned   = 32 << 10
	scanChunk = 1 << 10
)

// byScan takes the first word on the stack that can be a return address for the one of f.
// It is a guess: a word that an earlier call left there looks the same.
func (w *walk) byScan(f *Frame) (caller, *End, error) {
	if w.Arch.Link != w.Arch.PC {
		return caller{}, nil, errors.New("where its return address was saved cannot be told from its stack") // nor where the frame ends
	}
	sp, err := f.Registers.Addr(w.Arch.SP)
	if err != nil {
		return caller{}, nil, err
	}
	size := w.Arch.Pointer
	start := (sp + machine.Addr(size) - 1) &^ machine.Addr(size-1)
	var chunk [scanChunk]byte
	for at := start; at >= start && at < start+scanned; {
		b := readable(w, chunk[:], at)
		for i := 0; i+size <= len(b); i += size {
			pc := machine.Addr(w.Arch.Uint(b[i : i+size]))
			if pc == 0 || !w.Executable(pc-1) {
				continue
			}
			if called, err := w.callEndsAt(pc); err != nil || !called {
				continue
			}
			slot := at + machine.Addr(i)
			row := &Row{End: ^machine.Addr(0), ReturnAddress: w.Arch.Link,
				CFA: CFARule{Kind: CFARegister, Register: w.Arch.SP, Offset: int64(slot-sp) + int64(size)}}
			row.columns.set(w.Arch.Link, RegisterRule{Kind: RuleOffset, Offset: -int64(size)})
			return w.prove(f, &step{row: row, rule: FromScan, partial: true,
				guess: "nothing says where the stack of frame #%d ends: this is the first word on it that follows a call, which an earlier call may have left there"})
		}
		if len(b) < len(chunk) {
			return caller{}, nil, fmt.Errorf("no word from %v on, as far as the stack can be read, is a return address", sp)
		}
		at += scanChunk
	}
	return caller{}, nil, fmt.Errorf("no word in the %d bytes from %v on is a return address", scanned, sp)
}

// readable reads as much of b as there is.
func readable(m machine.Memory, b []byte, at machine.Addr) []byte {
	for ; len(b) > 0; b = b[:len(b)/2&^7] {
		if m.ReadMemory(b, at) == nil {
			return b
		}
	}
	return nil
}
