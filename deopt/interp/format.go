package interp

import (
	"math/big"
	"strings"

	abstract "example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// FrameType returns the plain type for an IR type, with the IR's spelling. A type without a plain kind, or with too many parts to spell, is opaque.
// A type larger than a frame's slot (64 KiB) gives the zero type.
func FrameType(dl *ir.DataLayout, t *ir.Type) abstract.Type {
	parts := maxParts
	return frameType(dl, t, &parts)
}

// frameType implements [FrameType] for a type that may have up to *parts parts. It subtracts the parts of the type from *parts.
func frameType(dl *ir.DataLayout, t *ir.Type, parts *int) abstract.Type {
	out := abstract.Type{Source: t.String()}
	*parts--
	switch t.Kind {
	case ir.IntKind:
		out.Kind, out.Bits = abstract.Int, t.Bits
	case ir.PointerKind:
		out.Kind, out.Bits = abstract.Pointer, 8*dl.PointerBytes(t.AddrSpace)
	case ir.BFloatKind:
		out.Kind, out.Bits = abstract.BFloat, 16
	case ir.HalfKind, ir.FloatKind, ir.DoubleKind, ir.X86FP80Kind, ir.FP128Kind:
		out.Kind, out.Bits = abstract.Float, floatWidths[t.Kind]
	default:
		size := dl.StoreSize(t)
		if size > maxOpaque {
			break
		}
		out.Kind, out.Bits = abstract.Opaque, 8*int(size)
		compose(dl, t, &out, parts)
	}
	return out
}

// compose adds the parts of a vector, array or struct, unless there are more than the limit.
func compose(dl *ir.DataLayout, t *ir.Type, out *abstract.Type, parts *int) {
	switch {
	case t.Kind == ir.StructKind && !t.Opaque:
		var fields []abstract.Field
		for i, f := range t.Fields {
			if *parts <= 0 {
				return
			}
			fields = append(fields, abstract.Field{Type: frameType(dl, f, parts), Offset: int(dl.FieldOffset(t, i))})
		}
		if *parts >= 0 {
			out.Kind, out.Fields = abstract.Struct, fields
		}
	case t.Kind == ir.ArrayKind && t.Len == 0:
		out.Kind = abstract.Array
	case t.Kind == ir.VectorKind && !t.Scalable, t.Kind == ir.ArrayKind:
		before := *parts
		elem := frameType(dl, t.Elem, parts)
		each := uint64(before - *parts)
		if *parts < 0 || t.Len > uint64(before)/each {
			*parts = -1
			return
		}
		*parts = before - int(each*t.Len)
		out.Elem, out.Len = &elem, int(t.Len)
		if t.Kind == ir.ArrayKind {
			out.Kind, out.Stride = abstract.Array, int(dl.Size(t.Elem))
		} else {
			out.Kind, out.Bits = abstract.Vector, elem.Bits*int(t.Len)
		}
	}
}

// maxParts is the maximum number of parts in a type that FrameType describes by its parts.
const maxParts = 4096

var floatWidths = map[ir.TypeKind]int{ir.HalfKind: 16, ir.FloatKind: 32, ir.DoubleKind: 64, ir.X86FP80Kind: 80, ir.FP128Kind: 128}

const maxOpaque = 1 << 16

// Format returns the value in the natural form of its type, and a scalar as [abstract.Type.Format] spells it: <…> for vectors, […] for arrays, {…}
// for structs. A scalar with an undefined bit is "undef", a poison one is "poison". No value is "void".
func (v Value) Format() string {
	if v.s == nil {
		return "void"
	}
	open, end := "{", "}"
	switch v.s.typ.Kind {
	case ir.VectorKind:
		open, end = "<", ">"
	case ir.ArrayKind:
		open, end = "[", "]"
	case ir.StructKind:
	default:
		return v.formatScalar()
	}
	parts := make([]string, v.s.n)
	for i := range parts {
		e, _ := v.Elem(i)
		parts[i] = e.Format()
	}
	return open + strings.Join(parts, ", ") + end
}

func (v Value) formatScalar() string {
	raw, ok := v.Bytes(ownLayout)
	switch {
	case anyPoison(v.w):
		return "poison"
	case !ok:
		return "undef"
	}
	if text := FrameType(ownLayout, v.s.typ).Format(raw, machine.AMD64.Order); text != "" {
		return text
	}
	return v.s.typ.String()
}

// ownLayout is the data layout for values that belong to no module: little-endian.
var ownLayout = func() *ir.DataLayout {
	dl, err := ir.ParseDataLayout("")
	if err != nil {
		panic(err) // cannot fail: the empty layout is the default one
	}
	return dl
}()

func ones(n uint) *big.Int {
	one := big.NewInt(1)
	return new(big.Int).Sub(new(big.Int).Lsh(one, n), one)
}

// IRType returns the IR type for the type of a slot, or nil if no value of that type can be made.
func IRType(t abstract.Type) *ir.Type {
	switch t.Kind {
	case abstract.Int:
		return &ir.Type{Kind: ir.IntKind, Bits: t.Bits}
	case abstract.Pointer:
		return ir.Ptr
	case abstract.BFloat:
		return &ir.Type{Kind: ir.BFloatKind}
	case abstract.Float:
		if kind, known := floatKinds[t.Bits]; known {
			return &ir.Type{Kind: kind}
		}
	}
	return nil
}

var floatKinds = map[int]ir.TypeKind{16: ir.HalfKind, 32: ir.FloatKind, 64: ir.DoubleKind, 80: ir.X86FP80Kind, 128: ir.FP128Kind}
