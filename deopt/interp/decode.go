package interp

import (
	"reframe/deopt/ir"
)

// maxFrame bounds the words of one frame.
const maxFrame = 1 << 20

// decoder makes a function of closures over frame words from its IR.
type decoder struct {
	in     *Interp
	fn     *function
	consts map[ir.Value]slot
	phis   map[*ir.Instr]map[*ir.Block]ir.Value
}

// function returns f decoded, which happens once. It errs where the text of the
// body cannot be parsed; an instruction that cannot be run errs when it is run.
func (in *Interp) function(f *ir.Func) (*function, error) {
	if fn := in.code[f]; fn != nil {
		return fn, nil
	}
	body, err := f.Body()
	if err != nil {
		return nil, &trouble{KindModule, err}
	}
	if len(body) == 0 {
		return nil, unsupported("", "@%s, which has no body,", f.Name)
	}
	d := &decoder{
		in: in, fn: &function{ir: f, slots: map[ir.Value]slot{}},
		consts: map[ir.Value]slot{}, phis: map[*ir.Instr]map[*ir.Block]ir.Value{},
	}
	if d.fn.ret, err = in.shapes.of(f.Sig.Elem); err != nil {
		return nil, err
	}
	if err := d.values(f, body); err != nil {
		return nil, err
	}
	for _, b := range body {
		d.fn.blocks = append(d.fn.blocks, &block{ir: b, steps: make([]step, len(b.Instrs))})
	}
	for i, b := range body {
		if err := d.block(d.fn.blocks[i], b); err != nil {
			return nil, err
		}
	}
	in.code[f] = d.fn
	return d.fn, nil
}

// values gives each parameter and result its place, so that an instruction may
// use what stands further down.
func (d *decoder) values(f *ir.Func, body []*ir.Block) error {
	for _, p := range f.Params {
		s, err := d.place(p.Typ)
		if err != nil {
			return err
		}
		d.fn.slots[p] = s
		d.fn.params = append(d.fn.params, s)
	}
	for _, b := range body {
		for _, i := range b.Instrs {
			t := i.Typ
			if callee := statepointResult(i); callee != nil {
				t = callee
			}
			if t == nil || t.Kind == ir.VoidKind {
				continue
			}
			s, err := d.place(t)
			if err != nil {
				return at(err, &block{ir: b}, i.Index)
			}
			d.fn.slots[i] = s
		}
	}
	return nil
}

// place makes room for a value of type t, undefined until it is set.
func (d *decoder) place(t *ir.Type) (slot, error) {
	s, err := d.in.shapes.of(t)
	if err != nil {
		return slot{}, err
	}
	p := slot{len(d.fn.template), s}
	if p.at+s.words > maxFrame {
		return slot{}, unsupported("", "a frame of more than %d words", maxFrame)
	}
	d.fn.template = append(d.fn.template, s.undefined()...)
	return p, nil
}

// operand finds where a value lies; a constant is given a place in the template.
func (d *decoder) operand(v ir.Value) (slot, error) {
	switch v.(type) {
	case *ir.Param, *ir.Instr:
		s, ok := d.fn.slots[v]
		if !ok {
			return slot{}, troublef(KindModule, "%s has no value", v.Ref())
		}
		return s, nil
	}
	if s, ok := d.consts[v]; ok {
		return s, nil
	}
	w, err := d.in.constant(v)
	if err != nil {
		return slot{}, err
	}
	s, err := d.place(v.Type())
	if err != nil {
		return slot{}, err
	}
	if len(w) != s.s.words {
		return slot{}, troublef(KindModule, "%s is no value of type %v", v.Ref(), v.Type())
	}
	copy(d.fn.template[s.at:], w)
	if d.consts != nil {
		d.consts[v] = s
	}
	return s, nil
}

// operands finds the first n arguments of an instruction.
func (d *decoder) operands(i *ir.Instr, n int) ([]slot, error) {
	if len(i.Args) < n {
		return nil, troublef(KindModule, "%v has %d operands", i.Op, len(i.Args))
	}
	list := make([]slot, n)
	for k := range list {
		var err error
		if list[k], err = d.operand(i.Args[k]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// fails is the step of an instruction that could not be decoded: the error
// comes when it is reached.
func fails(err error) step { return func(*frame) error { return err } }

func (d *decoder) block(b *block, src *ir.Block) error {
	last := len(src.Instrs) - 1
	if last < 0 {
		return troublef(KindModule, "@%s: block %%%s is empty", src.Func.Name, src.Name)
	}
	for k, i := range src.Instrs[:last] {
		if i.Op == ir.OpPhi && b.phis == k {
			b.phis++
			continue
		}
		run, err := d.instruction(i)
		if err != nil {
			run = fails(err)
		}
		b.steps[k] = run
	}
	end, err := d.terminator(src.Instrs[last])
	if err != nil {
		end = func(*frame) (*edge, error) { return nil, err }
	}
	b.end = end
	return nil
}

// out is where an instruction puts its result, of no words when it has none.
func (d *decoder) out(i *ir.Instr) slot {
	out := d.fn.slots[i]
	if out.s == nil {
		out.s = &shape{typ: ir.Void}
	}
	return out
}

func (d *decoder) instruction(i *ir.Instr) (step, error) {
	out := d.out(i)
	if i.Op == ir.OpCall {
		return d.call(i, out)
	}
	return d.operation(i, out)
}

// operation decodes what computes a value from values, or uses memory.
func (d *decoder) operation(i *ir.Instr, out slot) (step, error) {
	switch i.Op {
	case ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpUDiv, ir.OpSDiv, ir.OpURem, ir.OpSRem, ir.OpShl, ir.OpLShr, ir.OpAShr,
		ir.OpAnd, ir.OpOr, ir.OpXor:
		return d.arith(i, out)
	case ir.OpFAdd, ir.OpFSub, ir.OpFMul, ir.OpFDiv, ir.OpFRem:
		return d.floatArith(i, out)
	case ir.OpFNeg, ir.OpFreeze:
		return d.unary(i, out)
	case ir.OpICmp:
		return d.icmp(i, out)
	case ir.OpFCmp:
		return d.fcmp(i, out)
	case ir.OpTrunc, ir.OpZExt, ir.OpSExt, ir.OpPtrToInt, ir.OpPtrToAddr, ir.OpIntToPtr, ir.OpAddrSpaceCast:
		return d.resize(i, out)
	case ir.OpFPTrunc, ir.OpFPExt, ir.OpFPToUI, ir.OpFPToSI, ir.OpUIToFP, ir.OpSIToFP:
		return d.floatCast(i, out)
	case ir.OpBitCast:
		return d.bitcast(i, out)
	case ir.OpSelect:
		return d.selection(i, out)
	case ir.OpExtractElement, ir.OpInsertElement, ir.OpShuffleVector, ir.OpExtractValue, ir.OpInsertValue:
		return d.elements(i, out)
	case ir.OpGEP:
		return d.gep(i, out)
	case ir.OpAlloca, ir.OpLoad, ir.OpStore, ir.OpFence, ir.OpCmpXchg, ir.OpAtomicRMW:
		return d.memory(i, out)
	case ir.OpVAArg:
		return nil, unsupported("run a caller that is not variadic", "va_arg")
	}
	return nil, unsupported("", "%v", i.Op)
}
