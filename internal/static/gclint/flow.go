package gclint

import (
	"fmt"
	"slices"

	"example.com/reframe/internal/llvm/ir"
)

// maxState limits the bits of the dataflow of one function. Only a hostile function needs more.
const maxState = 1 << 31

// maxSteps limits the instructions at which the searches for the safepoints of one function look. Only a hostile function needs more.
const maxSteps = 1 << 28

// carrier is a value whose address a collector can change, or the content of an alloca.
type carrier struct {
	value ir.Value
	kind  kind
}

// bits is a set of carriers by index.
type bits []uint64

func (b bits) has(i int32) bool { return b[i/64]>>(i%64)&1 != 0 }

func (b bits) set(i int32, on bool) {
	if on {
		b[i/64] |= 1 << (i % 64)
	} else {
		b[i/64] &^= 1 << (i % 64)
	}
}

// state holds the stale carriers before an instruction: may has those that are stale on some path to it, must those that are stale on all paths.
type state struct{ may, must bits }

func (w *flow) newState() state {
	n := (len(w.carriers) + 63) / 64
	return state{make(bits, n), make(bits, n)}
}

func (s state) equal(o state) bool { return slices.Equal(s.may, o.may) && slices.Equal(s.must, o.must) }

func (s state) set(i int32, v verdict) { s.may.set(i, v.may); s.must.set(i, v.must) }

func (s state) get(i int32) verdict { return verdict{s.may.has(i), s.must.has(i)} }

// verdict reports whether a value is stale on some path (may) and on all paths (must).
type verdict struct{ may, must bool }

// flow computes the stale values of one function.
type flow struct {
	p          Pointers
	f          *ir.Func
	blocks     []*ir.Block
	rewritten  bool // the function has statepoints
	safepoints int
	preds      [][]*ir.Block // reachable predecessors of each block
	order      []*ir.Block   // reverse postorder of the reachable blocks
	reached    []bool
	users      map[ir.Value][]*ir.Instr
	slots      map[ir.Value]*alloca // keys: all values that are an address of the alloca
	wide       map[ir.Value]bool    // values that would be carriers if the difference of two addresses counted as an address
	index      map[ir.Value]int32
	carriers   []carrier
	moves      bits // carriers that go stale at each safepoint
	out        []state
	steps      int                      // instructions at which searches looked
	relocated  map[*ir.Instr]relocation // results of gc.relocate
	relocates  map[ir.Value][]*ir.Instr // the gc.relocates of each derived pointer
}

// relocation is the pair of a gc.relocate.
type relocation struct {
	statepoint *ir.Instr
	pair       ir.Relocated
}

func newFlow(f *ir.Func, p Pointers) (*flow, error) {
	blocks, err := f.Body()
	if err != nil {
		return nil, err
	}
	w := &flow{p: p, f: f, blocks: blocks, preds: make([][]*ir.Block, len(blocks)), reached: make([]bool, len(blocks)), relocated: map[*ir.Instr]relocation{},
		relocates: map[ir.Value][]*ir.Instr{}}
	w.walk(blocks)
	for _, b := range w.order {
		for _, in := range b.Instrs {
			w.rewritten = w.rewritten || isStatepoint(in)
			statepoint, pair, ok, err := in.Relocation()
			if err != nil {
				return nil, err
			}
			if ok {
				w.relocated[in] = relocation{statepoint, pair}
				w.relocates[pair.Derived] = append(w.relocates[pair.Derived], in)
			}
		}
	}
	for _, b := range w.order {
		for _, in := range b.Instrs {
			if w.safepoint(in) {
				w.safepoints++
			}
		}
	}
	return w, nil
}

// walk orders the reachable blocks without recursion.
func (w *flow) walk(blocks []*ir.Block) {
	type visit struct {
		block *ir.Block
		next  int
	}
	work := []visit{{blocks[0], 0}}
	w.reached[blocks[0].Index] = true
	for len(work) > 0 {
		v := &work[len(work)-1]
		targets := successors(v.block)
		if v.next == len(targets) {
			w.order = append(w.order, v.block)
			work = work[:len(work)-1]
			continue
		}
		to := targets[v.next]
		v.next++
		if from := v.block; !slices.Contains(w.preds[to.Index], from) {
			w.preds[to.Index] = append(w.preds[to.Index], from)
		}
		if !w.reached[to.Index] {
			w.reached[to.Index] = true
			work = append(work, visit{to, 0})
		}
	}
	slices.Reverse(w.order)
}

func successors(b *ir.Block) []*ir.Block { return b.Instrs[len(b.Instrs)-1].Blocks }

// safepoint reports whether a call is a safepoint: a statepoint, or before the rewriting a call that will be one.
func (w *flow) safepoint(in *ir.Instr) bool {
	if in.Call == nil {
		return false
	}
	if w.rewritten {
		return isStatepoint(in)
	}
	return mayCollect(in)
}

// operands returns the values that an instruction reads.
func operands(in *ir.Instr) []ir.Value {
	if in.Call == nil {
		return in.Args
	}
	all := append(slices.Clone(in.Args), in.Call.Callee)
	for _, b := range in.Call.Bundles {
		all = append(all, b.Args...)
	}
	return all
}

// run computes the dataflow.
func (w *flow) run() error {
	w.users = map[ir.Value][]*ir.Instr{}
	for _, b := range w.order {
		for _, in := range b.Instrs {
			for _, v := range operands(in) {
				switch v.(type) {
				case *ir.Instr, *ir.Param:
					if l := w.users[v]; len(l) == 0 || l[len(l)-1] != in {
						w.users[v] = append(l, in)
					}
				}
			}
		}
	}
	w.allocas()
	w.number()
	w.wide = map[ir.Value]bool{}
	for v := range w.index {
		w.wide[v] = true
	}
	w.number()
	if 2*int64(len(w.carriers))*int64(len(w.blocks)) > maxState {
		return fmt.Errorf("%s: %s has too many blocks and references (%d and %d)", w.f.Module.Name, w.f.Ref(), len(w.blocks), len(w.carriers))
	}
	w.moves = w.newState().may
	for i, c := range w.carriers {
		w.moves.set(int32(i), c.kind == aggregate || c.kind == address || w.rewritten && (c.kind == pointer || c.kind == token))
	}
	w.out = make([]state, len(w.blocks))
	for changed := true; changed; {
		changed = false
		for _, b := range w.order {
			s := w.start(b)
			for _, in := range b.Instrs {
				w.step(s, in)
			}
			if w.out[b.Index].may == nil || !w.out[b.Index].equal(s) {
				w.out[b.Index], changed = s, true
			}
		}
	}
	return nil
}

// start returns the state at the start of a block, after its phis.
func (w *flow) start(b *ir.Block) state {
	s := w.newState()
	first := true
	for _, p := range w.preds[b.Index] {
		o := w.out[p.Index]
		switch {
		case o.may == nil: // the block has not been visited yet
			continue
		case first:
			copy(s.may, o.may)
			copy(s.must, o.must)
			first = false
			continue
		}
		for k := range s.may {
			s.may[k] |= o.may[k]
			s.must[k] &= o.must[k]
		}
	}
	for _, in := range b.Instrs {
		if in.Op != ir.OpPhi {
			break
		}
		i, ok := w.index[in]
		if !ok {
			continue
		}
		v := verdict{false, true}
		for k, from := range in.Blocks {
			if !w.reached[from.Index] || w.out[from.Index].may == nil {
				continue
			}
			one := w.verdict(w.out[from.Index], in.Args[k])
			v.may, v.must = v.may || one.may, v.must && one.must
		}
		s.set(i, verdict{v.may, v.may && v.must})
	}
	return s
}

// verdict returns whether a value is stale. A value without an address never is.
func (w *flow) verdict(s state, v ir.Value) verdict {
	i, ok := w.index[v]
	if !ok {
		return verdict{}
	}
	return s.get(i)
}

// step changes the state by the effect of an instruction. A phi has none: start has applied it.
func (w *flow) step(s state, in *ir.Instr) {
	if in.Op == ir.OpPhi {
		return
	}
	if w.safepoint(in) {
		w.collect(s, in)
	}
	if in.Op == ir.OpStore {
		w.store(s, in)
	}
	i, ok := w.index[in]
	if !ok || w.carriers[i].kind == slot {
		return
	}
	v := verdict{}
	if from := w.sources(in); len(from) > 0 {
		v.must = in.Op == ir.OpSelect
		for _, u := range from {
			one := w.verdict(s, u)
			v.may = v.may || one.may
			if in.Op == ir.OpSelect {
				v.must = v.must && one.must
			} else {
				v.must = v.must || one.must
			}
		}
	}
	s.set(i, v)
}

// collect marks the carriers that go stale at a safepoint. Allocas in its bundles stay fresh, because the collector updates them.
func (w *flow) collect(s state, in *ir.Instr) {
	for k := range s.may {
		s.may[k] |= w.moves[k]
		s.must[k] |= w.moves[k]
	}
	for i, c := range w.carriers {
		if c.kind == slot && !w.listed(in, c.value) {
			held := s.get(int32(i) + 1)
			now := s.get(int32(i))
			s.set(int32(i), verdict{now.may || held.may, now.must || held.must})
		}
	}
}

// listed reports whether a bundle of a safepoint has the address of an alloca.
func (w *flow) listed(in *ir.Instr, of ir.Value) bool {
	for _, b := range in.Call.Bundles {
		for _, v := range b.Args {
			if a := w.slots[v]; a != nil && ir.Value(a.in) == of {
				return true
			}
		}
	}
	return false
}

// keeps reports whether a store leaves an address in an alloca that a safepoint makes stale. Before the rewriting, an alloca that holds a whole managed
// pointer does not count: mem2reg turns it into values that the pass relocates, if no access is volatile. A copy of an address stays a copy.
func (w *flow) keeps(a *alloca, in *ir.Instr) bool {
	j, ok := w.index[in.Args[0]]
	return ok && (w.rewritten || a.weak || a.volatile || w.carriers[j].kind != pointer)
}

// store changes the content of an alloca.
func (w *flow) store(s state, in *ir.Instr) {
	a := w.slots[in.Args[1]]
	if a == nil {
		return
	}
	i, ok := w.index[a.in]
	if !ok {
		return
	}
	v, held := w.verdict(s, in.Args[0]), verdict{}
	if w.keeps(a, in) {
		held = verdict{true, true}
	}
	if a.weak {
		before, was := s.get(i), s.get(i+1)
		v, held = verdict{before.may || v.may, false}, verdict{was.may || held.may, false}
	}
	s.set(i, v)
	s.set(i+1, held)
}
