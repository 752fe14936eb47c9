package instrument

import (
	"fmt"

	"reframe/deopt/ir"
	"reframe/deopt/lint"
	"reframe/deopt/sites"
)

// loss says why a site cannot have a value, or nothing. Most of it is what lint would say of the site.
func (w *writer) loss(i *ir.Instr, bundle bool, v ir.Value) string {
	t := v.Type()
	switch {
	case swiftError(v):
		return "a swifterror is no value that anything but a call and a load may take"
	case scalable(t):
		return fmt.Sprintf("%v has no size that a record could have", t)
	}
	switch t.Kind {
	case ir.X86MMXKind, ir.X86AMXKind, ir.TargetKind, ir.TokenKind, ir.LabelKind, ir.MetadataKind:
		return fmt.Sprintf("%v has no location", t)
	}
	s := &ir.Site{Kind: ir.StackMapSite, Func: i.Block.Func, Instr: i}
	if bundle {
		s.Kind = ir.StatepointSite
	}
	rule, why, _ := lint.Loss(s, v)
	switch {
	case rule != "" && (!bundle || rule != lint.X87Operand):
		return fmt.Sprintf("%v %s", t, why)
	case !bundle && w.Release < 16 && !registerType(w.m, sites.FirstLeaf(t)):
		return fmt.Sprintf("%v crashes the code generator of LLVM 14", t)
	}
	return ""
}

// registerType says whether a value of a type fills a register of the module's machine: LLVM 14 promotes no operand of a stackmap (seen: llc
// 14, not 16).
func registerType(m *ir.Module, t *ir.Type) bool {
	switch t.Kind {
	case ir.IntKind:
		return t.Bits == 32 || t.Bits == 64 || sites.X86Triple(m.Triple) && (t.Bits == 8 || t.Bits == 16)
	case ir.HalfKind, ir.BFloatKind:
		return false
	case ir.VectorKind:
		bits := 64
		switch t.Elem.Kind {
		case ir.IntKind:
			bits = t.Elem.Bits
		case ir.FloatKind:
			bits = 32
		case ir.DoubleKind, ir.PointerKind:
		default:
			return false
		}
		return bits >= 8 && bits <= 64 && bits&(bits-1) == 0 && uint64(bits)*t.Len >= 128
	}
	return true
}

// swiftError says whether a value is the place of a Swift error, which lies in a register (LangRef, "Parameter Attributes").
func swiftError(v ir.Value) bool {
	switch v := v.(type) {
	case *ir.Param:
		return v.Attrs.SwiftError
	case *ir.Instr:
		return v.Op == ir.OpAlloca && v.Flags&ir.SwiftError != 0
	}
	return false
}

// scalable says whether a type has a vector without a fixed size in it.
func scalable(t *ir.Type) bool {
	switch t.Kind {
	case ir.VectorKind:
		return t.Scalable
	case ir.ArrayKind:
		return scalable(t.Elem)
	case ir.StructKind:
		for _, f := range t.Fields {
			if scalable(f) {
				return true
			}
		}
	}
	return false
}
