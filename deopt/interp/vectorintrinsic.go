package interp

import (
	"math/big"

	"example.com/reframe/internal/llvm/ir"
)

// moves are the intrinsics that reorder elements of vectors. Before LLVM 17 to 19 their names begin with experimental.
var moves = map[string]intrinsicDecoder{
	"vector.extract": vectorExtract, "vector.insert": vectorInsert, "vector.reverse": vectorReverse,
	"vector.splice": vectorSplice, "vector.interleave2": interleave, "vector.deinterleave2": deinterleave,
}

// permute returns a step that copies elements of the frame to out. from lists the word where each element starts.
func permute(out slot, from []int) step {
	n := out.s.elem.words
	return func(fr *frame) error {
		for k, at := range from {
			copy(fr.w[out.at+k*n:out.at+(k+1)*n], fr.w[at:at+n])
		}
		return nil
	}
}

// vectors reports whether all slots are vectors of the same element type.
func vectors(list ...slot) bool {
	for _, v := range list {
		if v.s.typ.Kind != ir.VectorKind || !alike(v.s.elem, list[0].s.elem) {
			return false
		}
	}
	return true
}

// starts lists the word at which each element of the vectors starts, one vector after another.
func starts(list ...slot) []int {
	var at []int
	for _, v := range list {
		for k := range v.s.n {
			at = append(at, v.at+k*v.s.elem.words)
		}
	}
	return at
}

func vectorExtract(_ *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	if len(args) != 2 || !vectors(args[0], out) {
		return nil, wrongUse(i)
	}
	first, ok := constantIndex(i.Args[1])
	if !ok || first > uint64(args[0].s.n) || int(first)+out.s.n > args[0].s.n {
		return nil, wrongUse(i)
	}
	return permute(out, starts(args[0])[first:int(first)+out.s.n]), nil
}

func vectorInsert(_ *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	if len(args) != 3 || !vectors(args[0], args[1], out) || args[0].s.n != out.s.n {
		return nil, wrongUse(i)
	}
	first, ok := constantIndex(i.Args[2])
	if !ok || first > uint64(out.s.n) || int(first)+args[1].s.n > out.s.n {
		return nil, wrongUse(i)
	}
	from := starts(args[0])
	copy(from[first:], starts(args[1]))
	return permute(out, from), nil
}

func vectorReverse(_ *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	if len(args) != 1 || !vectors(args[0], out) || args[0].s.n != out.s.n {
		return nil, wrongUse(i)
	}
	from := starts(args[0])
	for k, l := 0, len(from)-1; k < l; k, l = k+1, l-1 {
		from[k], from[l] = from[l], from[k]
	}
	return permute(out, from), nil
}

// vectorSplice concatenates two vectors, and yields consecutive elements from a constant index on. A negative index counts from the end of the first
// vector.
func vectorSplice(_ *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	if len(args) != 3 || !vectors(args[0], args[1], out) || !alike(args[0].s, out.s) || !alike(args[1].s, out.s) {
		return nil, wrongUse(i)
	}
	c, ok := i.Args[2].(*ir.Const)
	if !ok || c.Kind != ir.ConstInt && c.Kind != ir.ConstZero || args[2].s.bits == 0 {
		return nil, wrongUse(i)
	}
	first := new(big.Int)
	if c.Int != nil {
		first = signed(c.Int, args[2].s.bits)
	}
	n := int64(out.s.n)
	if !first.IsInt64() || first.Int64() < -n || first.Int64() >= n {
		return nil, wrongUse(i)
	}
	at := first.Int64()
	if at < 0 {
		at += n
	}
	return permute(out, starts(args[0], args[1])[at:at+n]), nil
}

func interleave(_ *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	if len(args) != 2 || !vectors(args[0], args[1], out) || args[0].s.n != args[1].s.n || out.s.n != 2*args[0].s.n {
		return nil, wrongUse(i)
	}
	a, b := starts(args[0]), starts(args[1])
	var from []int
	for k := range a {
		from = append(from, a[k], b[k])
	}
	return permute(out, from), nil
}

// deinterleave yields two vectors: the elements with even indices, and those with odd indices.
func deinterleave(_ *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	if len(args) != 1 || out.s.field == nil || out.s.n != 2 {
		return nil, wrongUse(i)
	}
	halves := []slot{{out.at, out.s.field[0]}, {out.at + out.s.at[1], out.s.field[1]}}
	if !vectors(args[0], halves[0], halves[1]) || 2*halves[0].s.n != args[0].s.n || 2*halves[1].s.n != args[0].s.n {
		return nil, wrongUse(i)
	}
	var from [2][]int
	for k, at := range starts(args[0]) {
		from[k%2] = append(from[k%2], at)
	}
	even, odd := permute(halves[0], from[0]), permute(halves[1], from[1])
	return func(fr *frame) error {
		if err := even(fr); err != nil {
			return err
		}
		return odd(fr)
	}, nil
}

// stepVector yields the vector <0, 1, 2, …>, modulo 2^width.
func stepVector(_ *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	if len(args) != 0 || out.s.typ.Kind != ir.VectorKind || out.s.elem.typ.Kind != ir.IntKind {
		return nil, wrongUse(i)
	}
	e := out.s.elem
	return func(fr *frame) error {
		for k := range out.s.n {
			setBig(fr.w[out.at+k*e.words:out.at+(k+1)*e.words], big.NewInt(int64(k)), e.bits)
		}
		return nil
	}, nil
}

// activeLanes computes for each lane whether base+lane, without wrapping around, is below a limit (LangRef, "llvm.get.active.lane.mask"). A limit of
// zero makes the result poison.
func activeLanes(_ *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	if len(args) != 2 || !alike(args[0].s, args[1].s) || args[0].s.typ.Kind != ir.IntKind ||
		out.s.typ.Kind != ir.VectorKind || out.s.elem.bits != 1 {
		return nil, wrongUse(i)
	}
	return func(fr *frame) error {
		base, limit, dst := args[0].in(fr), args[1].in(fr), out.in(fr)
		for k := range dst {
			if !defined(base) || !defined(limit) {
				unknownWords(dst[k:k+1], 1, base, limit)
				continue
			}
			at := toBig(base)
			dst[k] = bit(at.Add(at, big.NewInt(int64(k))).Cmp(toBig(limit)) < 0)
			if defined(limit) && toBig(limit).Sign() == 0 {
				dst[k] = poisonOf(1)
			}
		}
		return nil
	}, nil
}
