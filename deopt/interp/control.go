package interp

import (
	"cmp"
	"math/big"

	"example.com/reframe/internal/llvm/ir"
)

// terminator decodes the last instruction of a block.
func (d *decoder) terminator(c *inst, i *ir.Instr) error {
	edges := make([]*edge, len(i.Blocks))
	made := map[*ir.Block]*edge{} // one edge per block: many cases of a switch may lead to the same block
	for k, to := range i.Blocks {
		if made[to] == nil {
			e, err := d.edge(i.Block, to)
			if err != nil {
				return err
			}
			made[to] = e
		}
		edges[k] = made[to]
	}
	c.op = opEnd
	var err error
	switch i.Op {
	case ir.OpRet:
		err = d.ret(c, i)
	case ir.OpBr:
		err = d.br(c, i, edges)
	case ir.OpSwitch:
		err = d.switched(c, i, edges)
	case ir.OpIndirectBr:
		err = d.indirectBr(c, i, edges)
	case ir.OpUnreachable:
		err = troublef(KindUnreachable, "unreachable was reached")
	case ir.OpResume:
		c.run, err = d.resume(i)
	default:
		err = unsupported("", "%v", i.Op)
	}
	if err == nil {
		d.chargeEdges(c, d.words(i, slot{s: &shape{}}), edges)
	}
	return err
}

// chargeEdges makes a terminator count additional steps if its operands and the phis of the next block have many words.
func (d *decoder) chargeEdges(c *inst, words int, edges []*edge) {
	most := 0
	for _, e := range edges {
		n := 0
		for _, m := range e.moves {
			n += m.words
		}
		most = max(most, n)
	}
	if words += most; words > wide {
		c.op, c.run = opEnd, d.charged(c.run, words)
	}
}

func (d *decoder) ret(c *inst, i *ir.Instr) error {
	if len(i.Args) == 0 {
		c.op, c.run = opRetAny, func(fr *frame) error { fr.in.pop(); return nil }
		return nil
	}
	v, err := d.operand(i.Args[0])
	if err != nil {
		return err
	}
	if !alike(v.s, d.fn.ret) {
		return troublef(KindModule, "ret of %v; expected %v", v.s.typ, d.fn.ret.typ)
	}
	c.run = func(fr *frame) error {
		copy(fr.ret, v.in(fr))
		fr.in.pop()
		return nil
	}
	if v.s.words == 1 {
		c.op, c.a = opRet, int32(v.at)
	}
	return nil
}

// edge decodes the moves for the phis of block to on entry from block from.
func (d *decoder) edge(from, to *ir.Block) (*edge, error) {
	e := &edge{to: d.fn.blocks[to.Index], simple: true}
	for _, phi := range to.Instrs[:e.to.phis] {
		v, err := d.incoming(phi, from)
		if err != nil {
			return nil, err
		}
		out := d.fn.slots[phi]
		if out.s == nil || !alike(v.s, out.s) {
			return nil, troublef(KindModule, "%s gets a value of type %v", phi.Ref(), v.s.typ)
		}
		if out.s.words == 0 || out.at == v.at {
			continue
		}
		promises := promises(phi.Flags, out)
		e.promises = append(e.promises, promises...)
		e.simple = e.simple && out.s.words == 1 && promises == nil
		e.moves = append(e.moves, move{out.at, v.at, out.s.words})
	}
	e.clash = !ordered(e.moves)
	e.simple = e.simple && !e.clash
	return e, nil
}

// sorted is the maximum number of moves that ordered sorts, because sorting takes cubic time. For more moves, edge.move reads all sources before it
// writes any destination.
const sorted = 64

// ordered sorts moves so that no move reads a word that an earlier one wrote. It returns false if the moves form a cycle, or if there are more than
// sorted.
func ordered(moves []move) bool {
	if len(moves) > sorted {
		return false
	}
	for k := range moves {
		// The next move must write a word that none of the moves after it reads.
		found := false
		for n := k; n < len(moves) && !found; n++ {
			found = true
			for m := k; m < len(moves); m++ {
				found = found && (m == n || moves[m].from != moves[n].to)
			}
			if found {
				moves[k], moves[n] = moves[n], moves[k]
			}
		}
		if !found {
			return false
		}
	}
	return true
}

// incoming returns the value of a phi on entry from a block. It builds a map of a phi's predecessors once, because a block may have many phis and
// many predecessors.
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

func (d *decoder) br(c *inst, i *ir.Instr, edges []*edge) error {
	switch {
	case len(i.Args) == 0 && len(edges) == 1:
		c.op, c.yes = opJump, edges[0]
		c.run = goes(edges[0])
		return nil
	case len(i.Args) == 1 && len(edges) == 2:
		v, err := d.operand(i.Args[0])
		if err != nil {
			return err
		}
		if v.s.bits != 1 {
			return troublef(KindModule, "br on %v", v.s.typ)
		}
		yes, no := edges[0], edges[1]
		c.op, c.a, c.yes, c.no = opBranch, int32(v.at), yes, no
		c.run = func(fr *frame) error {
			w := fr.w[v.at]
			if w.u != 0 {
				return notKnown(fr.w[v.at:v.at+1], "the condition %s", i.Args[0].Ref())
			}
			if fr.next = no; w.v != 0 {
				fr.next = yes
			}
			return nil
		}
		return nil
	}
	return troublef(KindModule, "br with %d targets", len(edges))
}

// goes returns a step that selects e as the edge to follow.
func goes(e *edge) step {
	return func(fr *frame) error { fr.next = e; return nil }
}

// table maps the case values of a switch to edges.
type table struct {
	dense  []*edge // used if the case values are close together: the edge of value least+k is dense[k]
	least  uint64
	sparse map[uint64]*edge
	wide   map[string]*edge // case values of more than 64 bits, in base 16
	other  *edge
}

func (d *decoder) switched(c *inst, i *ir.Instr, edges []*edge) error {
	if len(i.Args) == 0 || len(edges) != len(i.Cases)+1 {
		return troublef(KindModule, "switch with %d targets for %d cases", len(edges), len(i.Cases))
	}
	v, err := d.operand(i.Args[0])
	if err != nil {
		return err
	}
	if v.s.typ.Kind != ir.IntKind {
		return troublef(KindModule, "switch on %v", v.s.typ)
	}
	t := newTable(v.s, i.Cases, edges)
	if v.s.words == 1 {
		c.op, c.a, c.k = opSwitch, int32(v.at), uint64(len(d.fn.tables))
		d.fn.tables = append(d.fn.tables, t)
	}
	c.run = func(fr *frame) error {
		w := v.in(fr)
		if !defined(w) {
			return notKnown(w, "the operand of the switch, %s,", i.Args[0].Ref())
		}
		fr.next = t.at(w)
		return nil
	}
	return nil
}

func newTable(s *shape, cases []*big.Int, edges []*edge) *table {
	t := &table{sparse: map[uint64]*edge{}, wide: map[string]*edge{}, other: edges[0], least: ^uint64(0)}
	mod := new(big.Int).Lsh(big.NewInt(1), uint(s.bits))
	most := uint64(0)
	for k, c := range cases {
		c = new(big.Int).Mod(c, mod)
		if s.words > 1 {
			t.wide[c.Text(16)] = edges[k+1]
			continue
		}
		t.sparse[c.Uint64()] = edges[k+1]
		t.least, most = min(t.least, c.Uint64()), max(most, c.Uint64())
	}
	if n := uint64(len(t.sparse)); n > 0 && most-t.least < 4*n+16 {
		t.dense = make([]*edge, most-t.least+1)
		for k := range t.dense {
			t.dense[k] = t.other
			if e := t.sparse[t.least+uint64(k)]; e != nil {
				t.dense[k] = e
			}
		}
	}
	return t
}

func (t *table) at(w []word) *edge {
	if len(w) == 1 {
		return t.of(w[0].v)
	}
	return cmp.Or(t.wide[toBig(w).Text(16)], t.other)
}

// of returns the edge for a value of at most 64 bits.
func (t *table) of(v uint64) *edge {
	switch k := v - t.least; {
	case k < uint64(len(t.dense)):
		return t.dense[k]
	case t.dense != nil:
		return t.other
	}
	return cmp.Or(t.sparse[v], t.other)
}

func (d *decoder) indirectBr(c *inst, i *ir.Instr, edges []*edge) error {
	args, err := d.operands(i, 1)
	if err != nil {
		return err
	}
	if args[0].s.typ.Kind != ir.PointerKind {
		return troublef(KindModule, "indirectbr on %v", args[0].s.typ)
	}
	targets := map[*ir.Block]*edge{}
	for _, e := range edges {
		targets[e.to.ir] = e
	}
	taken := map[uint64]*edge{}
	c.op, c.a, c.k = opIndirect, int32(args[0].at), uint64(len(d.fn.targets))
	d.fn.targets = append(d.fn.targets, taken)
	c.run = func(fr *frame) error {
		a, err := pointer(fr, args[0])
		if err != nil {
			return err
		}
		if fr.next = targets[fr.in.names.blockAt[a]]; fr.next == nil {
			return troublef(KindFault, "indirectbr to %v, which is not the address of one of its blocks", a)
		}
		taken[uint64(a)] = fr.next
		return nil
	}
	return nil
}

// invoke decodes an invoke as two instructions: a call, and a branch to the normal destination. An exception skips the branch.
func (d *decoder) invoke(at int, i *ir.Instr, out slot) error {
	run, err := d.call(i, out)
	if err != nil {
		return err
	}
	if len(i.Blocks) == 0 {
		return troublef(KindModule, "invoke without a normal destination")
	}
	e, err := d.edge(i.Block, i.Blocks[0])
	if err != nil {
		return err
	}
	d.fn.code[at].op, d.fn.code[at].run = opCall, d.charged(run, d.words(i, out))
	jump := inst{op: opJump, yes: e, run: goes(e)}
	d.chargeEdges(&jump, 0, []*edge{e})
	if d.fn.pads == nil {
		d.fn.pads = map[*ir.Instr]*pad{}
	}
	d.fn.pads[i] = d.pad(i)
	d.fn.code = append(d.fn.code, jump)
	d.fn.src = append(d.fn.src, i)
	return nil
}
