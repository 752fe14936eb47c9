package unwind

import (
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// Left describes the step from a frame to the next one.
type Left struct {
	Rule Rule // the rule used; "" if the walk ended before there was one
	// Row has the rules that were applied. It is nil if the walk ended before it had a row, if a scan found the next frame, or if the registers
	// come from a [Switch]. For the outermost frame it is the row of its CFI.
	Row *cfi.Row
	// Section and Offset give the row's FDE, and Range is the code that it covers; Section is "" if the row was not read from an FDE.
	Section string
	Offset  int64
	machine.Range
	// Tried lists the attempts that failed before the row.
	Tried []string
}

// Left returns the step from the frame to the next one.
func (f *Frame) Left() Left {
	var out Left
	for _, err := range f.tried {
		out.Tried = append(out.Tried, err.Error())
	}
	s := f.left
	if way := f.code.ways[f.place()]; s == nil && way != nil {
		s = way.cfi
	}
	if s == nil {
		return out
	}
	if out.Rule = s.rule; s.rule == FromScan || s.row.CFA.Kind == cfi.CFAUndefined {
		return out
	}
	out.Row = s.row
	if s.rule != FromCFI || f.code.Table == nil {
		return out
	}
	if fde, err := f.code.Table.Find(f.lookup()); err == nil {
		out.Section, out.Offset, out.Start, out.End = fde.Section, fde.Offset, fde.Start, fde.End
	}
	return out
}

// Lookup returns the address to look up in tables of code. For a return address it is an address inside the call, because the return address may
// be the first byte after the function.
func (f *Frame) Lookup() machine.Addr { return f.lookup() }
