package deopt

import (
	"reframe/deopt/frame"
	"reframe/deopt/interp"
	"reframe/deopt/ir"
	"reframe/deopt/stackmap"
)

// noLocation says whether a site's record has no location at all for an operand.
// An x86_fp80 of a stackmap or patchpoint lives in an x87 register, for which LLVM
// writes none (seen: llc 14 to 22), and the operands behind it move up.
func noLocation(s *ir.Site, v ir.Value) bool {
	return v.Type().Kind == ir.X86FP80Kind && (s.Kind == ir.StackMapSite || s.Kind == ir.PatchPointSite)
}

// expected counts the locations that the live operands of a site leave in a record.
func expected(s *ir.Site) int {
	n := 0
	for _, v := range s.Live {
		if !noLocation(s, v) {
			n++
		}
	}
	return n
}

// halved says why a location cannot hold all of a value of type t, or "". The record
// gives no sign of it: the sizes may agree by chance.
func halved(t *ir.Type, l stackmap.Location, layout *ir.DataLayout) string {
	switch t.Kind {
	case ir.StructKind, ir.ArrayKind:
		if leaves(t) > 1 {
			return "LLVM records only the first element of an aggregate"
		}
	case ir.VectorKind:
		// In a register a vector of another shape was widened or promoted (a <4 x i1>
		// becomes four masks of 32 bits), and the record does not say how.
		if l.Kind == stackmap.Register && !wholeVector(t, layout) {
			return "how LLVM laid out a " + t.String() + " in a register is not recorded"
		}
	}
	return ""
}

// leaves counts the scalars of a type, up to two.
func leaves(t *ir.Type) int {
	switch t.Kind {
	case ir.StructKind:
		n := 0
		for _, f := range t.Fields {
			if n += leaves(f); n > 1 {
				break
			}
		}
		return n
	case ir.ArrayKind:
		if t.Len == 0 {
			return 0
		}
		return int(min(t.Len, 2)) * leaves(t.Elem)
	}
	return 1
}

// wholeVector says whether a vector fills an xmm, ymm or zmm register with elements
// that lie there as in memory.
func wholeVector(t *ir.Type, layout *ir.DataLayout) bool {
	element := interp.FrameType(layout, t.Elem)
	bits := uint64(element.Bits) * t.Len
	plain := element.Kind != frame.Opaque && (element.Bits == 8 || element.Bits == 16 || element.Bits == 32 || element.Bits == 64)
	return plain && (bits == 128 || bits == 256 || bits == 512)
}
