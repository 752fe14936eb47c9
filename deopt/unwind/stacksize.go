package unwind

import (
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// fromStackSize returns a step for a function with a known frame size, if f is at a call. The size is the distance from the stack pointer there to
// the return address. It does not include arguments that a call pushed; prove detects those.
func (u *codeReader) fromStackSize(f *Frame) *step {
	if f.code.Functions == nil || !f.Return || u.Arch.Link != u.Arch.PC {
		return nil
	}
	size, ok := f.code.Functions.FrameSize(f.lookup())
	if !ok || size > maxFrame {
		return nil
	}
	word := int64(u.Arch.Pointer)
	return &step{row: u.pushedRow(f.PC, int64(size)+word), rule: FromStackSize, partial: true}
}

// pushedRow returns the row at pc of a frame whose CFA is cfa bytes above the stack pointer. The return address is just below the CFA, where a
// call has pushed it.
func (u *codeReader) pushedRow(pc machine.Addr, cfa int64) *cfi.Row {
	row := &cfi.Row{Range: machine.Range{Start: pc, End: pc + 1}, ReturnAddress: u.Arch.Link,
		CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: u.Arch.SP, Offset: cfa}}
	row.SetRule(u.Arch.Link, cfi.RegisterRule{Kind: cfi.RuleOffset, Offset: -int64(u.Arch.Pointer)})
	return row
}

// maxFrame bounds the size of a frame.
const maxFrame = 1 << 32
