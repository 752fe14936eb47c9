package vmlayout

import (
	"cmp"
	"math/big"
	"slices"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
)

// OfModule returns the site with the facts of its module.
func OfModule(s *ir.Site) *Site {
	out := &Site{Function: s.Func.Name, Record: s.ID, Kind: string(s.Kind), Moment: frame.Unknown}
	for _, v := range s.Live {
		o := operandOf(s.Func.Module, v)
		if len(s.GCLive) > 0 && o.Constant == nil && !o.Undef && o.Type.Kind == frame.Pointer {
			if o.Pair = Unpaired; slices.Contains(s.GCLive, v) {
				o.Pair = Base
			}
			if o.Pair == Base && intoObject(v) {
				o.Pair = Derived
			}
		}
		out.Operands = append(out.Operands, o)
	}
	out.Args = ArgsOf(s)
	return out
}

// intoObject reports whether v is a GEP with an index other than the constant zero: a pointer computed from another one.
func intoObject(v ir.Value) bool {
	i, is := v.(*ir.Instr)
	return is && i.Op == ir.OpGEP && slices.ContainsFunc(i.Args[1:], func(index ir.Value) bool {
		c, constant := index.(*ir.Const)
		return !constant || c.Kind == ir.ConstInt && c.Int.Sign() != 0
	})
}

// OfRecord returns a site with the constants of its record. only is the site of the module that has the record, or nil; all are the possible sites;
// recorded holds the locations of the live values, for a record without a module.
func OfRecord(only *ir.Site, all []*ir.Site, e sites.RecordEntry, recorded []stackmap.Location, function string, r *frame.Record) *Site {
	out := &Site{Function: function, Record: r.ID, Kind: r.Site, Moment: cmp.Or(r.Moment, frame.Unknown)}
	number := func(o *Operand, l stackmap.Location, there bool) {
		if !there || l.Kind != stackmap.Constant && l.Kind != stackmap.ConstantIndex {
			return
		}
		if v, err := e.Map.Constant(l); err == nil {
			o.Constant = Number(v, o.Type)
		}
	}
	if only != nil {
		out.Operands, out.Args = OfModule(only).Operands, ArgsOf(only)
		a, _ := sites.Align(only, e)
		for k := range out.Operands {
			l, there := a.Location(k)
			number(&out.Operands[k], l, there)
		}
		return out
	}
	if agreed := sites.Agreements(all); agreed != nil {
		found := sites.AlignTogether(all, e)
		for k := range agreed {
			o := Operand{Name: agreed[k].Role(), Type: agreed[k].FrameType(), Undef: agreed[k].Undefined}
			l, there := found.Location(k)
			number(&o, l, there)
			out.Operands = append(out.Operands, o)
		}
		out.Args = ArgsOf(agreed[0].First)
		return out
	}
	for _, l := range recorded {
		o := Operand{}
		number(&o, l, true)
		out.Operands = append(out.Operands, o)
	}
	return out
}

// ArgsOf returns the arguments of a site's call, from its module.
func ArgsOf(s *ir.Site) (list []Operand) {
	for _, v := range s.Instr.Args {
		list = append(list, operandOf(s.Func.Module, v))
	}
	return list
}

func operandOf(m *ir.Module, v ir.Value) Operand {
	t := interp.FrameType(m.Layout, v.Type())
	return Operand{Name: sites.NameOf(v), Type: t, Constant: constantOf(v, t), Undef: sites.IsUndef(v)}
}

// constantOf returns the number of a constant of a module; nil for other values.
func constantOf(v ir.Value, t frame.Type) *big.Int {
	c, ok := v.(*ir.Const)
	if !ok {
		return nil
	}
	switch {
	case c.Kind == ir.ConstInt:
		return signed(c.Int, uint(t.Bits))
	case c.Kind == ir.ConstNull, c.Kind == ir.ConstZero && (t.Kind == frame.Int || t.Kind == frame.Pointer):
		return new(big.Int)
	}
	return nil
}

// signed interprets the low bits of a number as two's complement.
func signed(n *big.Int, bits uint) *big.Int {
	if bits == 0 || n.Bit(int(bits)-1) == 0 {
		return n
	}
	return new(big.Int).Sub(n, new(big.Int).Lsh(big.NewInt(1), bits))
}

// Number returns the constant in a location of a record, for an operand of a type; the type may be unknown.
func Number(v uint64, t frame.Type) *big.Int {
	if t.Kind == frame.Int && t.Bits > 1 && t.Bits < 64 {
		v = uint64(int64(v<<(64-t.Bits)) >> (64 - t.Bits))
	}
	return big.NewInt(int64(v))
}
