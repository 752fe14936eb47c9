package abi

import "reframe/deopt/ir"

// ArgumentArea is how many bytes of a caller's stack may hold arguments of a function, which are the function's own to
// write over: what does not fit the registers for arguments (System V ABI, AMD64 supplement, 3.2.3).
func ArgumentArea(f *ir.Func) uint64 {
	if f == nil {
		return 0
	}
	ints, floats, bytes := 6, 8, uint64(0)
	take := func(n int, from *int) {
		if *from >= n {
			*from -= n
			return
		}
		bytes += 8 * uint64(n)
	}
	var one func(t *ir.Type)
	one = func(t *ir.Type) {
		words := int(min(f.Module.Layout.Size(t)+7, 1<<16) / 8)
		switch {
		case t.Kind == ir.StructKind:
			for _, field := range t.Fields {
				one(field)
			}
		case t.Kind == ir.ArrayKind:
			for range min(t.Len, 64) {
				one(t.Elem)
			}
		case t.Kind == ir.IntKind || t.Kind == ir.PointerKind:
			take(words, &ints)
		case t.Kind == ir.X86FP80Kind:
			bytes += 16
		case floats > 0:
			floats--
		default:
			bytes += uint64(max(words, 1)) * 8
		}
	}
	for _, p := range f.Params {
		if t := p.Attrs.ByVal; t != nil {
			bytes += (f.Module.Layout.Size(t) + 7) &^ 7
			continue
		}
		one(p.Typ)
	}
	return bytes
}
