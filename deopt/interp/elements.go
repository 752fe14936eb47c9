package interp

import (
	"example.com/reframe/internal/llvm/ir"
)

func (d *decoder) selection(i *ir.Instr, out slot) (step, error) {
	args, err := d.operands(i, 3)
	if err != nil {
		return nil, err
	}
	c, a, b := args[0], args[1], args[2]
	lane, n := c.s.lane()
	if lane.bits != 1 || !alike(a.s, out.s) || !alike(b.s, out.s) || n != 1 && n != out.s.n {
		return nil, troublef(KindModule, "select %v of %v and %v", c.s.typ, a.s.typ, b.s.typ)
	}
	part := out.s
	if c.s.typ.Kind == ir.VectorKind {
		part = out.s.elem
	}
	promises := promises(i.Flags, out)
	return func(fr *frame) error {
		for k := range n {
			at, from := out.at+k*part.words, a.at
			switch w := fr.w[c.at+k]; {
			case isPoison(w):
				part.fillPoison(fr.w[at : at+part.words])
				continue
			case w.u != 0:
				either(part, fr.w[at:at+part.words], fr.w[a.at+k*part.words:], fr.w[b.at+k*part.words:])
				continue
			case w.v == 0:
				from = b.at
			}
			copy(fr.w[at:at+part.words], fr.w[from+k*part.words:from+(k+1)*part.words])
		}
		for _, p := range promises {
			p.enforce(out.in(fr))
		}
		return nil
	}, nil
}

// either stores the result of a select whose condition is undefined. A bit that is equal in a and b keeps its value, and any other bit is undefined.
// A scalar of the result is poison if it is poison in a or in b.
func either(s *shape, dst, a, b []word) {
	for _, l := range s.leaf {
		n := (l.bits + 63) / 64
		for k := range l.packed {
			from, to := l.at+k*n, l.at+(k+1)*n
			if anyPoison(a[from:to], b[from:to]) {
				poisonWords(dst[from:to], l.bits)
				continue
			}
			for i := from; i < to; i++ {
				u := a[i].u | b[i].u | a[i].v ^ b[i].v
				dst[i] = word{a[i].v &^ u, u}
			}
		}
	}
}

// elements decodes the instructions that extract, insert or shuffle elements of vectors, arrays and structs.
func (d *decoder) elements(i *ir.Instr, out slot) (step, error) {
	args, err := d.operands(i, len(i.Args))
	if err != nil {
		return nil, err
	}
	switch {
	case i.Op == ir.OpExtractElement && len(args) == 2:
		return extractElement(out, args[0], args[1])
	case i.Op == ir.OpInsertElement && len(args) == 3:
		return insertElement(out, args[0], args[1], args[2])
	case i.Op == ir.OpShuffleVector && len(args) >= 2:
		return shuffle(out, args[0], args[1], i.Path)
	case i.Op == ir.OpExtractValue && len(args) == 1:
		part, err := inside(args[0], i.Path)
		if err != nil || !alike(part.s, out.s) {
			return nil, troublef(KindModule, "extractvalue %v of %v", i.Path, args[0].s.typ)
		}
		return func(fr *frame) error {
			copy(out.in(fr), part.in(fr))
			return nil
		}, nil
	case i.Op == ir.OpInsertValue && len(args) == 2:
		part, err := inside(slot{out.at, out.s}, i.Path)
		if err != nil || !alike(part.s, args[1].s) || !alike(args[0].s, out.s) {
			return nil, troublef(KindModule, "insertvalue %v into %v", i.Path, args[0].s.typ)
		}
		return func(fr *frame) error {
			copy(out.in(fr), args[0].in(fr))
			copy(part.in(fr), args[1].in(fr))
			return nil
		}, nil
	}
	return nil, troublef(KindModule, "%v with %d operands", i.Op, len(args))
}

// inside returns the slot of the part of an aggregate that a path of indices selects.
func inside(a slot, path []int) (slot, error) {
	for _, k := range path {
		s, at, ok := a.s.part(k)
		if !ok {
			return slot{}, troublef(KindModule, "index %d of %v", k, a.s.typ)
		}
		a = slot{a.at + at, s}
	}
	return a, nil
}

// index reads the index of an element. It returns false for an index that is undefined or too large, which makes the result poison.
func index(fr *frame, at slot, n int) (int, bool) {
	w := at.in(fr)
	if !defined(w) {
		return 0, false
	}
	for _, high := range w[1:] {
		if high.v != 0 {
			return 0, false
		}
	}
	return int(w[0].v), w[0].v < uint64(n)
}

func extractElement(out, v, at slot) (step, error) {
	if v.s.typ.Kind != ir.VectorKind || !alike(v.s.elem, out.s) || at.s.bits == 0 {
		return nil, troublef(KindModule, "extractelement of %v", v.s.typ)
	}
	return func(fr *frame) error {
		k, ok := index(fr, at, v.s.n)
		if !ok {
			out.s.fillPoison(out.in(fr))
			return nil
		}
		from := v.at + k*out.s.words
		copy(out.in(fr), fr.w[from:from+out.s.words])
		return nil
	}, nil
}

func insertElement(out, v, e, at slot) (step, error) {
	if out.s.typ.Kind != ir.VectorKind || !alike(v.s, out.s) || !alike(out.s.elem, e.s) || at.s.bits == 0 {
		return nil, troublef(KindModule, "insertelement of %v into %v", e.s.typ, v.s.typ)
	}
	return func(fr *frame) error {
		copy(out.in(fr), v.in(fr))
		k, ok := index(fr, at, out.s.n)
		if !ok {
			out.s.fillPoison(out.in(fr))
			return nil
		}
		copy(fr.w[out.at+k*e.s.words:], e.in(fr))
		return nil
	}, nil
}

// shuffle selects elements by mask. Indices count through a and then b; -1 is poison.
func shuffle(out, a, b slot, mask []int) (step, error) {
	if out.s.typ.Kind != ir.VectorKind || a.s.typ.Kind != ir.VectorKind || !alike(a.s, b.s) ||
		!alike(a.s.elem, out.s.elem) || len(mask) != out.s.n {
		return nil, troublef(KindModule, "shufflevector of %v and %v to %v", a.s.typ, b.s.typ, out.s.typ)
	}
	e := out.s.elem
	from := make([]int, len(mask))
	for k, m := range mask {
		switch {
		case m >= 2*a.s.n:
			return nil, troublef(KindModule, "shufflevector takes element %d of %d", m, 2*a.s.n)
		case m < 0:
			from[k] = -1
		case m < a.s.n:
			from[k] = a.at + m*e.words
		default:
			from[k] = b.at + (m-a.s.n)*e.words
		}
	}
	return func(fr *frame) error {
		for k, f := range from {
			to := fr.w[out.at+k*e.words : out.at+(k+1)*e.words]
			if f < 0 {
				e.fillPoison(to)
			} else {
				copy(to, fr.w[f:f+e.words])
			}
		}
		return nil
	}, nil
}
