package gclint

import (
	"fmt"
	"slices"

	"example.com/reframe/internal/llvm/ir"
)

// use is an operand of an instruction that reads an address.
type use struct {
	value ir.Value
	what  string // such as "dereferenced"
	loose bool   // the use is not always a mistake if the value is an integer with an old address
}

// uses returns the operands that must not be stale. It omits operands whose address the result carries, because the uses of the result are checked
// instead.
func (w *flow) uses(s state, in *ir.Instr) (all []use) {
	value := func(v ir.Value, what string) { all = append(all, use{v, what, true}) }
	switch in.Op {
	case ir.OpLoad:
		return []use{{in.Args[0], "dereferenced", false}}
	case ir.OpStore:
		all = []use{{in.Args[1], "dereferenced", false}}
		if w.slots[in.Args[1]] == nil {
			value(in.Args[0], "stored")
		}
	case ir.OpAtomicRMW, ir.OpCmpXchg:
		all = []use{{in.Args[0], "dereferenced", false}}
		for _, v := range in.Args[1:] {
			value(v, "stored or compared")
		}
	case ir.OpRet:
		for _, v := range in.Args {
			value(v, "returned")
		}
	case ir.OpICmp:
		// A comparison with null, or of two old addresses, has the same result as before the safepoint. A comparison of an old with a new address may
		// have another.
		for k, v := range in.Args {
			other := in.Args[1-k]
			if _, carries := w.index[other]; carries && !w.verdict(s, other).may {
				value(v, "compared with a current pointer")
			}
		}
	case ir.OpCall, ir.OpInvoke, ir.OpCallBr:
		if isRelocate(in) || propagates(in) || isIntrinsic(in, "llvm.experimental.gc.result", "llvm.assume", "llvm.lifetime.start", "llvm.lifetime.end",
			"llvm.invariant.start", "llvm.invariant.end", "llvm.objectsize", "llvm.experimental.gc.get.pointer.offset") {
			return nil
		}
		value(in.Call.Callee, "called")
		for _, v := range in.Args {
			value(v, "passed")
		}
		for _, b := range in.Call.Bundles {
			for _, v := range b.Args {
				value(v, "listed in the bundle \""+b.Tag+"\"")
			}
		}
	}
	return all
}

// report adds a finding for each value that went stale at a safepoint and is used later.
func (w *flow) report(r *Report) error {
	type key struct {
		origin    int32
		safepoint *ir.Instr
	}
	found := map[key]int{}
	type cause struct {
		safepoint *ir.Instr
		origin    int32
		null      bool // another origin is null at the use
	}
	for _, b := range w.order {
		s := w.start(b)
		causes := map[int32]cause{} // of the carriers that this block has used since its last safepoint
		for _, in := range b.Instrs {
			if in.Op == ir.OpPhi {
				continue
			}
			for _, u := range w.uses(s, in) {
				i, ok := w.index[u.value]
				if !ok || w.carriers[i].kind == slot || w.carriers[i].kind == token || !s.may.has(i) || w.null(u.value, b) {
					continue
				}
				c, known := causes[i]
				if !known {
					var err error
					search := search{w: w, at: b, seen: map[place]bool{}}
					if c.safepoint, c.origin, err = search.origin(i, in.Index); err != nil {
						return err
					}
					c.null = search.null
					causes[i] = c
				}
				if c.safepoint == nil {
					continue
				}
				f := w.finding(in, u, i, c.origin, c.safepoint, s.must.has(i) && !c.null)
				k := key{c.origin, c.safepoint}
				at, again := found[k]
				if !again {
					found[k] = len(r.Findings)
					r.add(in, f)
					continue
				}
				more := r.Findings[at].More + 1
				if rank[f.Certainty] > rank[r.Findings[at].Certainty] {
					r.add(in, f)
					r.Findings[at] = r.Findings[len(r.Findings)-1]
					r.Findings = r.Findings[:len(r.Findings)-1]
				}
				r.Findings[at].More = more
			}
			if w.safepoint(in) {
				clear(causes)
			}
			w.step(s, in)
		}
	}
	return nil
}

// null reports whether a value is null in a block because of a branch before the block. Null does not move.
func (w *flow) null(v ir.Value, b *ir.Block) bool {
	for range w.order { // a bound: no chain of single predecessors is longer
		preds := w.preds[b.Index]
		if len(preds) != 1 {
			return false
		}
		end := preds[0].Instrs[len(preds[0].Instrs)-1]
		if end.Op == ir.OpBr && len(end.Args) == 1 && end.Blocks[0] != end.Blocks[1] {
			if c, ok := end.Args[0].(*ir.Instr); ok && c.Op == ir.OpICmp &&
				(c.Args[0] == v && isNull(c.Args[1]) || c.Args[1] == v && isNull(c.Args[0])) {
				if c.Pred == "eq" && end.Blocks[0] == b || c.Pred == "ne" && end.Blocks[1] == b {
					return true
				}
			}
		}
		b = preds[0]
	}
	return false
}

func isNull(v ir.Value) bool {
	c, ok := v.(*ir.Const)
	return ok && (c.Kind == ir.ConstNull || c.Kind == ir.ConstZero)
}

// finding describes a use of a stale value.
func (w *flow) finding(in *ir.Instr, u use, i, origin int32, safepoint *ir.Instr, always bool) Finding {
	from := w.carriers[origin]
	f := Finding{Certainty: Likely, Value: u.value.Ref(), Origin: from.value.Ref(), Safepoint: safepointOf(safepoint)}
	if always {
		f.Certainty = Certain
	}
	if integer := w.carriers[i].kind == address && u.value.Type().Kind != ir.PointerKind; integer && u.loose {
		f.Certainty = Possible
	}
	call := fmt.Sprintf("the safepoint at line %d (call of %s)", safepoint.Line, calleeName(safepoint))
	subject := u.value.Ref()
	if u.value != from.value && from.kind != slot && from.kind != token {
		subject += ", computed from " + from.value.Ref() + ","
	}
	switch from.kind {
	case pointer:
		f.Rule = StaleUse
		f.What = fmt.Sprintf("%s is %s after %s, at which %s was not relocated", subject, u.what, call, from.value.Ref())
		f.Do = fmt.Sprintf("list %s in the gc-live bundle at line %d, and use its gc.relocate after it", from.value.Ref(), safepoint.Line)
	case aggregate:
		f.Rule = StaleUse
		f.What = fmt.Sprintf("%s is %s after %s, which cannot relocate %s: it is an aggregate", subject, u.what, call, from.value.Ref())
		f.Do = "extract the pointers before the safepoint"
	case token:
		f.Rule = StaleUse
		f.What = fmt.Sprintf("%s is %s, but it is read from the statepoint at line %d only after %s", subject, u.what, w.lineOf(from.value), call)
		f.Do = "move the gc.relocate or gc.result to directly after its statepoint"
	case slot:
		f.Rule = StaleSlot
		if w.slots[from.value].weak {
			f.Certainty = Possible
		}
		f.What = fmt.Sprintf("%s is %s; it was loaded from %s, which holds an address from before %s", subject, u.what, from.value.Ref(), call)
		f.Do = fmt.Sprintf("list %s in the gc-live bundle at line %d, or store the relocated pointer to it after the safepoint", from.value.Ref(), safepoint.Line)
	default:
		f.Rule = StaleCopy
		f.What = fmt.Sprintf("%s is %s; %s holds an address from before %s", subject, u.what, from.value.Ref(), call)
		f.Do = fmt.Sprintf("compute %s again from the relocated pointer after the safepoint", from.value.Ref())
	}
	return f
}

func (w *flow) lineOf(v ir.Value) int {
	if in, ok := v.(*ir.Instr); ok {
		return in.Line
	}
	return w.f.Line
}

// search finds the safepoint at which a carrier went stale, by walking back from a use.
type search struct {
	w    *flow
	at   *ir.Block // the block of the use
	seen map[place]bool
	null bool // an origin was skipped, because it is null at the use
}

// place is a carrier before an instruction.
type place struct {
	carrier int32
	block   *ir.Block
	at      int
}

// origin returns a safepoint at which a carrier went stale, or one from which it was computed. It returns nil if each of these is null at the use.
func (s *search) origin(i int32, at int) (safepoint *ir.Instr, origin int32, err error) {
	work := []place{{i, s.at, at}} // a stack: the place nearest to the use is last
	for len(work) > 0 {
		p := work[len(work)-1]
		work = work[:len(work)-1]
		if s.seen[p] {
			continue
		}
		s.seen[p] = true
		safepoint, more, ok := s.block(p)
		switch {
		case !ok:
			work = append(work, more...)
		case s.w.null(s.w.carriers[p.carrier].value, s.at):
			s.null = true
		default:
			return safepoint, p.carrier, nil
		}
		if s.w.steps > maxSteps {
			return nil, 0, fmt.Errorf("%s: %s has too many uses of stale references", s.w.f.Module.Name, s.w.f.Ref())
		}
	}
	if !s.null {
		return nil, 0, fmt.Errorf("%s: %s: cannot find the safepoint at which %s went stale", s.w.f.Module.Name, s.w.f.Ref(), s.w.carriers[i].value.Ref())
	}
	return nil, 0, nil
}

// block walks back in one block: to a safepoint at which the carrier goes stale, or to the places at which to search next.
func (s *search) block(p place) (safepoint *ir.Instr, next []place, ok bool) {
	w, c := s.w, s.w.carriers[p.carrier]
	fresh := false // the alloca holds no address before the safepoints that precede: held was false after them
	for k := p.at - 1; k >= 0; k-- {
		w.steps++
		in := p.block.Instrs[k]
		if in.Op == ir.OpPhi {
			break
		}
		if ir.Value(in) == c.value && c.kind != slot {
			for _, v := range w.sources(in) {
				if j, ok := w.index[v]; ok {
					next = append(next, place{j, p.block, k})
				}
			}
			return nil, next, false
		}
		if w.safepoint(in) {
			if w.moves.has(p.carrier) {
				return in, nil, true
			}
			if c.kind == slot && !fresh && !w.listed(in, c.value) {
				if w.held(p, k) {
					return in, nil, true
				}
				fresh = true
			}
		}
		if in.Op == ir.OpStore && c.kind == slot {
			if a := w.slots[in.Args[1]]; a != nil && ir.Value(a.in) == c.value {
				if j, ok := w.index[in.Args[0]]; ok {
					next = append(next, place{j, p.block, k})
				}
				if !a.weak {
					return nil, next, false
				}
			}
		}
	}
	if phi, isInstr := c.value.(*ir.Instr); isInstr && phi.Op == ir.OpPhi && phi.Block == p.block {
		for k, from := range phi.Blocks {
			if j, ok := w.index[phi.Args[k]]; ok && w.reached[from.Index] {
				next = append(next, place{j, from, len(from.Instrs)})
			}
		}
		return nil, next, false
	}
	for _, from := range w.preds[p.block.Index] {
		next = append(next, place{p.carrier, from, len(from.Instrs)})
	}
	return nil, next, false
}

// held reports whether an alloca may hold an address before an instruction.
func (w *flow) held(p place, at int) bool {
	a := w.slots[w.carriers[p.carrier].value]
	for k := at - 1; k >= 0; k-- {
		w.steps++
		in := p.block.Instrs[k]
		if in.Op != ir.OpStore || w.slots[in.Args[1]] != a {
			continue
		}
		if w.keeps(a, in) {
			return true
		}
		if !a.weak {
			return false
		}
	}
	return slices.ContainsFunc(w.preds[p.block.Index], func(from *ir.Block) bool { return w.out[from.Index].may.has(p.carrier + 1) })
}
