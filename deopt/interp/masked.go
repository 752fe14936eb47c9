package interp

import (
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// masked accesses the elements of a vector that a mask selects (LangRef, "Masked Vector Load and Store Intrinsics"). Its operands are the stored
// value, the address or addresses, the alignment (before LLVM 22), the mask, and the values of elements that are not loaded.
type masked struct {
	stores    bool
	scattered bool // each element has its own address
	packed    bool // the selected elements are adjacent in memory
}

var maskeds = map[string]masked{
	"masked.load": {}, "masked.gather": {scattered: true}, "masked.expandload": {packed: true},
	"masked.store": {stores: true}, "masked.scatter": {stores: true, scattered: true}, "masked.compressstore": {stores: true, packed: true},
}

func (x masked) decode(_ *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	list := args
	if len(list) == 4 {
		list = append(append([]slot{}, list[:1]...), list[2:]...)
		if x.stores {
			list = append(append([]slot{}, args[:2]...), args[3])
		}
	}
	if len(list) != 3 {
		return nil, wrongUse(i)
	}
	at, mask, v := list[0], list[1], list[2]
	if x.stores {
		v, at, mask = list[0], list[1], list[2]
	}
	addresses, n := at.s.lane()
	bits, m := mask.s.lane()
	if v.s.typ.Kind != ir.VectorKind || !x.stores && !alike(v.s, out.s) || m != v.s.n || bits.bits != 1 ||
		addresses.typ.Kind != ir.PointerKind || addresses.words != 1 || x.scattered != (n == m && at.s.typ.Kind == ir.VectorKind) || !x.scattered && n != 1 {
		return nil, wrongUse(i)
	}
	e := v.s.elem
	if e.bits%8 != 0 {
		return nil, unsupported("", "%s of elements that are not whole bytes", i.Call.Callee.Ref())
	}
	return func(fr *frame) error {
		place := 0
		for k := range m {
			on := fr.w[mask.at+k : mask.at+k+1]
			if !defined(on) {
				return notKnown(on, "element %d of the mask", k)
			}
			w := fr.w[v.at+k*e.words : v.at+(k+1)*e.words]
			if !x.stores {
				dst := fr.w[out.at+k*e.words : out.at+(k+1)*e.words]
				copy(dst, w)
				w = dst
			}
			if on[0].v != 0 {
				a, err := x.address(fr, at, k, place*e.bits/8)
				if err != nil {
					return err
				}
				if x.stores {
					err = fr.in.store(a, e, w)
				} else {
					err = fr.in.load(a, e, w)
				}
				if err != nil {
					return err
				}
			}
			if on[0].v != 0 || !x.packed {
				place++
			}
		}
		return nil
	}, nil
}

// address returns the address of element k. If the operand is a single address, that is the address plus offset bytes.
func (x masked) address(fr *frame, at slot, k, offset int) (machine.Addr, error) {
	if x.scattered {
		return pointer(fr, slot{at.at + k, at.s.elem})
	}
	a, err := pointer(fr, at)
	return a + machine.Addr(offset), err
}
