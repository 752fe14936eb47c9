package unwind

// fromStackSize is the step for a function whose frame has a size that is known, where f
// stands at a call: the size counts what is between the stack pointer there and the return
// address. It does not count arguments that a call pushed; prove finds that out.
func (w *walk) fromStackSize(f *Frame) *step {
	if f.code.Functions == nil || !f.Return || w.Arch.Link != w.Arch.PC {
		return nil
	}
	size, ok := f.code.Functions.FrameSize(f.lookup())
	if !ok || size > maxFrame {
		return nil
	}
	word := int64(w.Arch.Pointer)
	row := &Row{Start: f.PC, End: f.PC + 1, ReturnAddress: w.Arch.Link,
		CFA: CFARule{Kind: CFARegister, Register: w.Arch.SP, Offset: int64(size) + word}}
	row.columns.set(w.Arch.Link, RegisterRule{Kind: RuleOffset, Offset: -word})
	return &step{row: row, rule: FromStackSize, partial: true}
}

// maxFrame is the size from which on a frame is none.
const maxFrame = 1 << 32
