package deopt

import (
	"strings"

	"reframe/deopt/frame"
	"reframe/deopt/interp"
	"reframe/deopt/ir"
	"reframe/deopt/stackmap"
)

// mayVanish says whether a site's record may have no location at all for an operand: those behind it move up then, see
// [alignment]. It is one that may lie in an x87 register: an x86_fp80, and without SSE a float or double, as compilers for
// 32-bit x86 do without being told; a module for x86-64 does not say whether llc was given -mattr=-sse2, and the number of
// locations does for any site but a statepoint. Of an aggregate LLVM looks at the first element alone.
func mayVanish(s *ir.Site, v ir.Value) bool {
	switch firstLeaf(v.Type()).Kind {
	case ir.X86FP80Kind:
		return true
	case ir.FloatKind, ir.DoubleKind:
		triple := s.Func.Module.Triple
		return isI386(triple) || recordsStatepoint(s) && x86Triple(triple)
	}
	return false
}

// isI386 says whether a module is for 32-bit x86.
func isI386(triple string) bool {
	first, _, _ := strings.Cut(triple, "-")
	return first == "x86" || len(first) == 4 && first[0] == 'i' && first[2:] == "86"
}

// unrecorded says why a value that the record has no location for is unavailable.
func unrecorded(t *ir.Type) string {
	if t.Kind == ir.X86FP80Kind {
		return "LLVM records no location for an x86_fp80"
	}
	return "LLVM records no location for a " + t.String() + " in an x87 register"
}

// halved says why a location cannot hold all of a value of type t, or "". The record
// gives no sign of it: the sizes may agree by chance.
func halved(t *ir.Type, l stackmap.Location, layout *ir.DataLayout) string {
	if l.Kind == stackmap.Direct && t.Kind != ir.PointerKind {
		// Of an argument that comes in parts on the stack, such as an i128 (seen: statepoints of llc 16 to 22).
		return "LLVM records an address in the frame for it, and not what lies there"
	}
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

// reshaped says whether a value with parts may lie in a location in another way than a store of its type would
// have left it there, so that its parts cannot be told apart. A stackmap or patchpoint has a vector of elements
// that no register holds with wider ones (seen: llc 16 to 22), and of an aggregate its only element.
func reshaped(s *ir.Site, t *ir.Type, l stackmap.Location) bool {
	layout := s.Func.Module.Layout
	leaf := firstLeaf(t)
	if t.Kind == ir.StructKind || t.Kind == ir.ArrayKind {
		if layout.StoreSize(t) != layout.StoreSize(leaf) {
			return true
		}
	}
	if leaf.Kind != ir.VectorKind {
		return false
	}
	if l.Kind == stackmap.Register {
		return !wholeVector(leaf, layout)
	}
	lowered := s.Kind == ir.StackMapSite || s.Kind == ir.PatchPointSite
	return lowered && uint64(l.Size) != layout.StoreSize(leaf)
}

// marksUndef says whether a location holds the mark that LLVM records for undef and poison:
// an entry of the constant table, or sign-extended from 32 bits (seen: LLVM 14 to 22).
// An operand that is computed may be found to be undef only in the code generator.
func marksUndef(m *stackmap.Map, l stackmap.Location) bool {
	const mark = 0xFEFEFEFE
	if l.Kind != stackmap.Constant && l.Kind != stackmap.ConstantIndex {
		return false
	}
	v, err := m.Constant(l)
	return err == nil && uint32(v) == mark
}

const undefMark = "the record holds 0xfefefefe, which LLVM writes for undef; nothing tells it from the number"

// isUndef says whether an operand is undef or poison in the module.
func isUndef(v ir.Value) bool {
	c, ok := v.(*ir.Const)
	return ok && (c.Kind == ir.ConstUndef || c.Kind == ir.ConstPoison)
}

// isConst says whether the module itself has a constant there.
func isConst(v ir.Value) bool {
	_, ok := v.(*ir.Const)
	return ok
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
