package interp

import (
	"slices"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// constant evaluates an operand that is neither a parameter nor an instruction.
func (in *Interp) constant(v ir.Value) ([]word, error) {
	switch v := v.(type) {
	case *ir.Const:
		return in.evaluate(v)
	case *ir.Global, *ir.Func, *ir.Alias:
		return in.address(v, v.Type())
	case *ir.Metadata:
		return nil, nil
	}
	return nil, troublef(KindModule, "%s is not a value", v.Ref())
}

func (in *Interp) address(v ir.Value, t *ir.Type) ([]word, error) {
	s, err := in.shapes.of(t)
	if err != nil {
		return nil, err
	}
	switch has, err := in.names.weak(v); {
	case err != nil:
		return nil, err
	case has == absent:
		return make([]word, s.words), nil
	case has == unsure:
		return s.undefined(), nil
	}
	a, err := in.names.of(v)
	if err != nil {
		return nil, err
	}
	if s.bits < 64 && uint64(a)>>uint(s.bits) != 0 {
		return nil, unsupported("", "%s, whose address %v is wider than %v,", v.Ref(), a, t)
	}
	return []word{{v: uint64(a)}}, nil
}

func (in *Interp) evaluate(c *ir.Const) ([]word, error) {
	s, err := in.shapes.of(c.Typ)
	if err != nil {
		return nil, err
	}
	switch c.Kind {
	case ir.ConstRef:
		return in.address(c.Target, c.Typ)
	case ir.ConstExpr:
		return in.expression(c)
	case ir.ConstUndef:
		return s.undefined(), nil
	case ir.ConstPoison:
		return s.poison(), nil
	}
	w := make([]word, s.words)
	switch c.Kind {
	case ir.ConstInt, ir.ConstFloat:
		if c.Int == nil || s.bits == 0 {
			return nil, troublef(KindModule, "a numeric constant of type %v", c.Typ)
		}
		setBig(w, c.Int, s.bits)
	case ir.ConstAggregate:
		if len(c.Elems) != s.n {
			return nil, troublef(KindModule, "%d elements in a constant of type %v", len(c.Elems), c.Typ)
		}
		for i, e := range c.Elems {
			part, err := in.evaluate(e)
			if err != nil {
				return nil, err
			}
			elem, at, _ := s.part(i)
			if len(part) != elem.words {
				return nil, troublef(KindModule, "element %d of a constant of type %v has type %v", i, c.Typ, e.Typ)
			}
			copy(w[at:], part)
		}
	case ir.ConstBytes:
		if len(c.Bytes) != len(w) {
			return nil, troublef(KindModule, "%d bytes in a constant of type %v", len(c.Bytes), c.Typ)
		}
		for i, b := range c.Bytes {
			w[i].v = uint64(b)
		}
	case ir.ConstBlockAddr:
		return in.blockAddress(c)
	case ir.ConstPtrAuth: // the signing key of the process is unknown
		return nil, unsupported("", "the signed pointer %s", c.Ref())
	case ir.ConstSplat:
		return nil, unsupported("", "the scalable vector %s", c.Ref())
	}
	return w, nil
}

func (in *Interp) blockAddress(c *ir.Const) ([]word, error) {
	f, ok := c.Target.(*ir.Func)
	if !ok {
		return nil, troublef(KindModule, "blockaddress without a function")
	}
	if _, err := f.Body(); err != nil {
		return nil, &trouble{KindModule, err}
	}
	blk := f.Block(c.Block)
	if blk == nil {
		return nil, troublef(KindModule, "blockaddress: @%s has no block %%%s", f.Name, c.Block)
	}
	return []word{{v: uint64(in.names.block(blk))}}, nil
}

// expression evaluates a constant expression by running the corresponding instruction.
func (in *Interp) expression(c *ir.Const) ([]word, error) {
	i := &ir.Instr{Op: c.Op, Typ: c.Typ, Elem: c.Source, Pred: c.Pred, Flags: c.Flags, Path: c.Path}
	for _, e := range c.Elems {
		i.Args = append(i.Args, e)
	}
	switch {
	case i.Op >= ir.OpAdd && i.Op <= ir.OpXor, i.Op >= ir.OpTrunc && i.Op <= ir.OpAddrSpaceCast, i.Op == ir.OpFNeg,
		slices.Contains([]ir.Op{ir.OpGEP, ir.OpICmp, ir.OpFCmp, ir.OpSelect, ir.OpExtractElement, ir.OpInsertElement,
			ir.OpShuffleVector, ir.OpExtractValue, ir.OpInsertValue}, i.Op):
	default:
		return nil, unsupported("", "the constant expression %v", c.Op)
	}
	d := &decoder{in: in, fn: &function{}}
	out, err := d.place(i.Typ)
	if err != nil {
		return nil, err
	}
	run, err := d.operation(i, out)
	if err != nil {
		return nil, err
	}
	fr := &frame{in: in, w: d.fn.template}
	if err := run(fr); err != nil {
		return nil, err
	}
	return out.in(fr), nil
}

// initialize writes a constant to memory that is zero. It writes arrays and structs by element, because an array in memory may be far larger than
// the largest value.
func (in *Interp) initialize(addr machine.Addr, t *ir.Type, c *ir.Const) error {
	switch {
	case c.Kind == ir.ConstZero || c.Kind == ir.ConstNull:
		return nil
	case c.Kind == ir.ConstBytes:
		return in.view.write(addr, c.Bytes, nil)
	case c.Kind == ir.ConstUndef:
		return in.view.fill(addr, word{u: 0xff}, in.layout.StoreSize(t))
	case c.Kind == ir.ConstPoison:
		return in.view.fill(addr, poisonOf(0xff), in.layout.StoreSize(t))
	case c.Kind == ir.ConstAggregate && t.Kind == ir.ArrayKind:
		for i, e := range c.Elems {
			if err := in.initialize(addr+machine.Addr(uint64(i)*in.layout.Size(t.Elem)), t.Elem, e); err != nil {
				return err
			}
		}
		return nil
	case c.Kind == ir.ConstAggregate && t.Kind == ir.StructKind:
		for i, e := range c.Elems {
			if i >= len(t.Fields) {
				return troublef(KindModule, "%d elements in a constant of type %v", len(c.Elems), t)
			}
			if err := in.initialize(addr+machine.Addr(in.layout.FieldOffset(t, i)), t.Fields[i], e); err != nil {
				return err
			}
		}
		return nil
	}
	w, err := in.evaluate(c)
	if err != nil {
		return err
	}
	s, err := in.shapes.of(t)
	if err != nil {
		return err
	}
	if len(w) != s.words {
		return troublef(KindModule, "a constant of type %v; expected %v", c.Typ, t)
	}
	return in.store(addr, s, w)
}
