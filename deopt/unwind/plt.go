package unwind

import (
	"encoding/binary"

	"reframe/deopt/machine"
)

// pltHeader returns the step from the first entry of a procedure linkage table, which others
// jump to with one word more on the stack than a function finds; nil for anything else
// (System V ABI, AMD64 supplement, figure 5.2). It is told by pushing a word of the
// global offset table and jumping through the next.
func (w *walk) pltHeader(f *Frame, start machine.Addr) *step {
	var b [16]byte
	code := readable(w.Memory, b[:], start)
	jump := 6
	if len(code) > 6 && code[6] == 0xf2 {
		jump = 7
	}
	if len(code) < jump+6 || code[0] != 0xff || code[1] != 0x35 || code[jump] != 0xff || code[jump+1] != 0x25 {
		return nil
	}
	slot := func(at int) int32 { return int32(binary.LittleEndian.Uint32(code[at+2:])) + int32(at) + 6 }
	pushed := int64(2)
	switch {
	case slot(jump) != slot(0)+8:
		return nil
	case f.PC == start+6:
		pushed++
	case f.PC != start:
		return nil
	}
	word := int64(w.Arch.Pointer)
	row := &Row{Start: f.PC, End: f.PC + 1, ReturnAddress: w.Arch.Link,
		CFA: CFARule{Kind: CFARegister, Register: w.Arch.SP, Offset: pushed * word}}
	row.columns.set(w.Arch.Link, RegisterRule{Kind: RuleOffset, Offset: -word})
	return &step{row: row, rule: FromCode} // it changes no register
}
