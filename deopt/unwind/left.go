package unwind

import (
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// Left describes how a frame was unwound to the next one.
type Left struct {
	Rule Rule // the rule used; "" if the walk ended before there was one
	// Row has the rules that were applied; nil if the walk ended before there was one, and if a scan found the next frame. For the outermost frame
	// it is the row of its CFI.
	Row *cfi.Row
	// Section and Offset are the place of the row's FDE, and Range is the code that it covers; Section is "" if the row is from no FDE.
	Section string
	Offset  int64
	machine.Range
	// Tried lists the ways that failed before the row.
	Tried []string
}

// Left returns how the frame was left.
func (f *Frame) Left() Left {
	out := Left{Tried: f.tried}
	s := f.left
	if way := f.code.ways[f.place()]; s == nil && way != nil {
		s = way.cfi
	}
	if s == nil {
		return out
	}
	if out.Rule = s.rule; s.rule == FromScan {
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

// Lookup is the address to look for in tables of code: inside the call for a return address,
// which may be the first byte past its function.
func (f *Frame) Lookup() machine.Addr { return f.lookup() }
