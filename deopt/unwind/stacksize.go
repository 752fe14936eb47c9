package unwind

import (
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// fromStackSize returns the step for a function with a known frame size, if f is at a call: the size counts the bytes between the stack pointer
// there and the return address. It does not count arguments that a call pushed; prove finds those.
func (w *walk) fromStackSize(f *Frame) *step {
	if f.code.Functions == nil || !f.Return || w.Arch.Link != w.Arch.PC {
		return nil
	}
	size, ok := f.code.Functions.FrameSize(f.lookup())
	if !ok || size > maxFrame {
		return nil
	}
	word := int64(w.Arch.Pointer)
	return &step{row: w.pushedRow(f.PC, int64(size)+word), rule: FromStackSize, partial: true}
}

// pushedRow is the row at pc of a frame whose CFA lies that far above the stack pointer, with the
// return address just below it, where a call pushed it.
func (w *walk) pushedRow(pc machine.Addr, cfa int64) *cfi.Row {
	row := &cfi.Row{Range: machine.Range{Start: pc, End: pc + 1}, ReturnAddress: w.Arch.Link,
		CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: w.Arch.SP, Offset: cfa}}
	row.SetRule(w.Arch.Link, cfi.RegisterRule{Kind: cfi.RuleOffset, Offset: -int64(w.Arch.Pointer)})
	return row
}

// maxFrame is the first size that no frame has.
const maxFrame = 1 << 32
