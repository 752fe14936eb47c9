package interp

import (
	"math/big"

	"reframe/deopt/ir"
)

// terminator decodes the last instruction of a block.
func (d *decoder) terminator(i *ir.Instr) (terminator, error) {
	edges := make([]*edge, len(i.Blocks))
	made := map[*ir.Block]*edge{} // a switch may have many cases for one block
	for k, to := range i.Blocks {
		if i.Op == ir.OpInvoke && k == 1 {
			break // nothing unwinds here
		}
		if made[to] == nil {
			e, err := d.edge(i.Block, to)
			if err != nil {
				return nil, err
			}
			made[to] = e
		}
		edges[k] = made[to]
	}
	switch i.Op {
	case ir.OpRet:
		return d.ret(i)
	case ir.OpBr:
		return d.br(i, edges)
	case ir.OpSwitch:
		return d.switched(i, edges)
	case ir.OpIndirectBr:
		return d.indirectBr(i, edges)
	case ir.OpInvoke:
		return d.invoke(i, edges)
	case ir.OpUnreachable:
		return nil, troublef(KindUnreachable, "unreachable was reached")
	}
	return nil, unsupported("exceptions are not carried on with", "%v", i.Op)
}

func (d *decoder) ret(i *ir.Instr) (terminator, error) {
	if len(i.Args) == 0 {
		return func(*frame) (*edge, error) { return nil, nil }, nil
	}
	v, err := d.operand(i.Args[0])
	if err != nil {
		return nil, err
	}
	if !alike(v.s, d.fn.ret) {
		return nil, troublef(KindModule, "ret of %v where %v is wanted", v.s.typ, d.fn.ret.typ)
	}
	return func(fr *frame) (*edge, error) {
		copy(fr.ret, v.in(fr))
		return nil, nil
	}, nil
}

// edge makes the moves that phis of block to stand for when it is entered from
// block from.
func (d *decoder) edge(from, to *ir.Block) (*edge, error) {
	e := &edge{to: d.fn.blocks[to.Index]}
	written := map[int]bool{}
	for _, phi := range to.Instrs {
		if phi.Op != ir.OpPhi {
			break
		}
		v, err := d.incoming(phi, from)
		if err != nil {
			return nil, err
		}
		out := d.fn.slots[phi]
		if out.s == nil || !alike(v.s, out.s) {
			return nil, troublef(KindModule, "%s takes a value of type %v", phi.Ref(), v.s.typ)
		}
		if out.s.words == 0 {
			continue
		}
		e.clash = e.clash || written[v.at]
		written[out.at] = true
		e.moves = append(e.moves, move{out.at, v.at, out.s.words})
	}
	return e, nil
}

// incoming finds the value that a phi takes from a block. The index is made
// once for each phi: a block may have many phis and many predecessors.
func (d *decoder) incoming(phi *ir.Instr, from *ir.Block) (slot, error) {
	index := d.phis[phi]
	if index == nil {
		index = make(map[*ir.Block]ir.Value, len(phi.Blocks))
		for k, b := range phi.Blocks {
			if k < len(phi.Args) {
				index[b] = phi.Args[k]
			}
		}
		d.phis[phi] = index
	}
	v := index[from]
	if v == nil {
		return slot{}, troublef(KindModule, "%s has no value for block %%%s", phi.Ref(), from.Name)
	}
	return d.operand(v)
}

func (d *decoder) br(i *ir.Instr, edges []*edge) (terminator, error) {
	switch {
	case len(i.Args) == 0 && len(edges) == 1:
		to := edges[0]
		return func(*frame) (*edge, error) { return to, nil }, nil
	case len(i.Args) == 1 && len(edges) == 2:
		c, err := d.operand(i.Args[0])
		if err != nil {
			return nil, err
		}
		if c.s.bits != 1 {
			return nil, troublef(KindModule, "br on %v", c.s.typ)
		}
		yes, no := edges[0], edges[1]
		return func(fr *frame) (*edge, error) {
			switch w := fr.w[c.at]; {
			case w.u != 0:
				return nil, undefined("the condition %s", i.Args[0].Ref())
			case w.v != 0:
				return yes, nil
			}
			return no, nil
		}, nil
	}
	return nil, troublef(KindModule, "br with %d targets", len(edges))
}

func (d *decoder) switched(i *ir.Instr, edges []*edge) (terminator, error) {
	if len(i.Args) == 0 || len(edges) != len(i.Cases)+1 {
		return nil, troublef(KindModule, "switch with %d targets for %d cases", len(edges), len(i.Cases))
	}
	v, err := d.operand(i.Args[0])
	if err != nil {
		return nil, err
	}
	if v.s.typ.Kind != ir.IntKind {
		return nil, troublef(KindModule, "switch on %v", v.s.typ)
	}
	narrow := map[uint64]*edge{}
	wide := map[string]*edge{}
	mod := new(big.Int).Lsh(big.NewInt(1), uint(v.s.bits))
	for k, c := range i.Cases {
		c = new(big.Int).Mod(c, mod)
		if v.s.words == 1 {
			narrow[c.Uint64()] = edges[k+1]
		} else {
			wide[c.Text(16)] = edges[k+1]
		}
	}
	return func(fr *frame) (*edge, error) {
		w := v.in(fr)
		if !defined(w) {
			return nil, undefined("the value of the switch, %s,", i.Args[0].Ref())
		}
		e := narrow[w[0].v]
		if len(w) > 1 {
			e = wide[toBig(w).Text(16)]
		}
		if e == nil {
			e = edges[0]
		}
		return e, nil
	}, nil
}

func (d *decoder) indirectBr(i *ir.Instr, edges []*edge) (terminator, error) {
	args, err := d.operands(i, 1)
	if err != nil {
		return nil, err
	}
	if args[0].s.typ.Kind != ir.PointerKind {
		return nil, troublef(KindModule, "indirectbr on %v", args[0].s.typ)
	}
	return func(fr *frame) (*edge, error) {
		a, err := pointer(fr, args[0])
		if err != nil {
			return nil, err
		}
		blk := fr.in.names.blockAt[a]
		for _, e := range edges {
			if blk != nil && e.to.ir == blk {
				return e, nil
			}
		}
		return nil, troublef(KindFault, "indirectbr to %v, which is the address of none of its blocks", a)
	}, nil
}

// invoke is a call and a branch: a callee here returns or ends the run.
func (d *decoder) invoke(i *ir.Instr, edges []*edge) (terminator, error) {
	run, err := d.call(i, d.out(i))
	if err != nil || len(edges) == 0 {
		return nil, err
	}
	return func(fr *frame) (*edge, error) {
		if err := run(fr); err != nil {
			return nil, err
		}
		return edges[0], nil
	}, nil
}
