package unwind

import (
	"reframe/deopt/machine"
	"reframe/deopt/unwind/cfi"
)

// Left says how a frame was left for the next one.
type Left struct {
	Rule Rule // by what; "" where the walk ended before there was a way
	// Row has the rules that were applied; nil where the walk ended before there was one, and
	// where a scan found the next frame. That of the outermost frame is what its CFI says.
	Row *cfi.Row
	// Section and Offset are where the FDE of the row stands, and Range the code that it
	// covers; Section is "" where the row is from no FDE.
	Section string
	Offset  int64
	machine.Range
	// Tried says what gave nothing before the row did.
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
