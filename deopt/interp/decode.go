package interp

import (
	"example.com/reframe/internal/llvm/ir"
)

// maxFrame is the maximum number of words in a frame.
const maxFrame = 1 << 20

// decoder decodes a function from its IR.
type decoder struct {
	in      *Interp
	fn      *function
	consts  map[ir.Value]slot
	fixed   map[int]bool // index of each word of the template that holds a constant
	phis    map[*ir.Instr]map[*ir.Block]ir.Value
	invokes map[*ir.Block]*ir.Instr // see invokeOf
}

// function decodes f, once, and returns the result. It returns an error if the body cannot be parsed. If an instruction cannot be decoded, the error
// is returned only when a run reaches that instruction.
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
		consts: map[ir.Value]slot{}, fixed: map[int]bool{}, phis: map[*ir.Instr]map[*ir.Block]ir.Value{},
	}
	if d.fn.ret, err = in.shapes.of(f.Sig.Elem); err != nil {
		return nil, err
	}
	if err := d.values(f, body); err != nil {
		return nil, err
	}
	for _, b := range body {
		if len(b.Instrs) == 0 {
			return nil, troublef(KindModule, "@%s: block %%%s is empty", f.Name, b.Name)
		}
		phis := 0
		for phis < len(b.Instrs)-1 && b.Instrs[phis].Op == ir.OpPhi {
			phis++
		}
		d.fn.blocks = append(d.fn.blocks, &block{ir: b, phis: phis})
	}
	for i, b := range body {
		d.block(d.fn.blocks[i], b)
	}
	d.fn.cost = frameCost(len(d.fn.template))
	if err := in.view.charge(d.fn.cost); err != nil { // the charge is never released: the template stays
		return nil, err
	}
	in.code[f] = d.fn
	return d.fn, nil
}

// values assigns a slot of the frame to each parameter and to the result of each instruction. It does so before decoding, so that an instruction may
// use a value that is defined later in the text.
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
				return placed(err, i)
			}
			d.fn.slots[i] = s
		}
	}
	return nil
}

// place reserves words of the frame for a value of type t. They are initially undefined.
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

// operand returns the slot of a value. It puts a constant into the template.
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
		return slot{}, troublef(KindModule, "%s is not a value of type %v", v.Ref(), v.Type())
	}
	copy(d.fn.template[s.at:], w)
	if d.consts != nil {
		d.consts[v], d.fixed[s.at] = s, true
	}
	return s, nil
}

// operands returns the slots of the first n arguments of an instruction.
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

// block decodes the instructions of a block and appends them to the code.
func (d *decoder) block(b *block, src *ir.Block) {
	b.start, b.size = len(d.fn.code), uint64(len(src.Instrs))
	last := len(src.Instrs) - 1
	for k, i := range src.Instrs[b.phis:] {
		at := len(d.fn.code)
		d.fn.code = append(d.fn.code, inst{count: 1, rest: uint32(last - b.phis - k)})
		d.fn.src = append(d.fn.src, i)
		if err := d.inst(at, i); err != nil {
			// Replace the instruction by a step that returns the error when the instruction is reached.
			d.fn.code[at].op, d.fn.code[at].run = opStep, func(*frame) error { return err }
		}
	}
	d.fuse(b)
}

// inst decodes one instruction into code[at].
func (d *decoder) inst(at int, i *ir.Instr) error {
	out := d.out(i)
	switch {
	case i.Op == ir.OpInvoke:
		return d.invoke(at, i, out)
	case i.Op.Terminator():
		return d.terminator(&d.fn.code[at], i)
	case i.Op == ir.OpCall:
		run, err := d.call(i, out)
		d.fn.code[at].op, d.fn.code[at].run = opCall, d.charged(run, d.words(i, out))
		if err == nil {
			d.quickCall(&d.fn.code[at], i, out)
		}
		return err
	}
	run, err := d.operation(i, out)
	if err != nil {
		return err
	}
	d.fn.code[at].run = d.charged(run, d.words(i, out))
	d.quick(&d.fn.code[at], i, out)
	return nil
}

// wide is the maximum number of words in the operands and result of an instruction that counts as one step.
const wide = 1 << 10

// charged returns run, or for an instruction of more than wide words a step that counts additional steps and then runs it.
func (d *decoder) charged(run step, words int) step {
	if words <= wide {
		return run
	}
	return func(fr *frame) error {
		if err := fr.in.work(8 * uint64(words)); err != nil {
			return err
		}
		return run(fr)
	}
}

// words returns the number of words in the result and operands of an instruction.
func (d *decoder) words(i *ir.Instr, out slot) int {
	n := out.s.words
	for _, v := range i.Args {
		if s, err := d.in.shapes.of(v.Type()); err == nil {
			n += s.words
		}
	}
	return n
}

// out returns the slot for the result of an instruction. An instruction without a result gets a slot of no words.
func (d *decoder) out(i *ir.Instr) slot {
	out := d.fn.slots[i]
	if out.s == nil {
		out.s = &shape{typ: ir.Void}
	}
	return out
}

// operation decodes an instruction other than a call or a terminator.
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
	case ir.OpLandingPad:
		return d.landingPad(i)
	case ir.OpVAArg:
		return d.vaArg(i, out)
	}
	return nil, unsupported("", "%v", i.Op)
}
