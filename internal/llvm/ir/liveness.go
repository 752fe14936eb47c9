package ir

import (
	"fmt"
	"slices"
	"sync"
)

// maxLiveIns bounds the live values of one function: the sum over all blocks of the values that are live on entry. Only a function that was made to
// be large has that many.
const maxLiveIns = 32 << 20

// lazyLiveness holds a function's liveness and its inputs.
type lazyLiveness struct {
	once  sync.Once
	err   error
	index map[Value]int32 // params in order, then instructions in program order
	value []Value
	in    [][]int32 // of each block: what is live on entry, without its own phis
	preds [][]*Block
}

// LiveAt returns the parameters and instructions whose values must be known to
// run on from instruction index of b: those that are read, on some way from
// there, before they are computed again. Started at the beginning of a block (or
// among its phis), its phis have taken their values already, and those that are
// read are among the result. Parameters come first, in order, then instructions
// in program order.
//
// A token is never among them. A gc.relocate reads the base and the derived
// pointer that its statepoint's gc-live bundle holds, and these are reported in
// its place; a gc.result reads what the call returns, which is no value from
// before it.
func LiveAt(b *Block, index int) (values []Value, err error) {
	err = LiveEach(b, []int{index}, func(_ int, live []Value) error {
		values = live
		return nil
	})
	return values, err
}

// LiveEach calls visit with the result of LiveAt for each of some indices of a block, which are in descending order: all of them take one walk
// through the block. It stops at an error of visit.
func LiveEach(b *Block, indices []int, visit func(index int, live []Value) error) error {
	for k, index := range indices {
		if index < 0 || index > len(b.Instrs) || k > 0 && index > indices[k-1] {
			return fmt.Errorf("block %s has no instruction %d", b.Ref(), index)
		}
	}
	l := &b.Func.computed().live
	l.once.Do(func() { l.err = l.compute(b.Func) })
	if l.err != nil {
		return l.err
	}
	live := l.liveOut(b)
	i := len(b.Instrs)
	for _, index := range indices {
		for ; i > index && b.Instrs[i-1].Op != OpPhi; i-- {
			delete(live, l.index[b.Instrs[i-1]])
			uses, err := l.uses(b.Instrs[i-1])
			if err != nil {
				return err
			}
			for _, v := range uses {
				live[v] = true
			}
		}
		if err := visit(index, l.values(live)); err != nil {
			return err
		}
	}
	return nil
}

// liveOut returns the values that are live at the end of a block, before its successors' phis take values.
func (l *lazyLiveness) liveOut(b *Block) map[int32]bool {
	live := map[int32]bool{}
	for _, s := range successors(b) {
		for _, v := range l.in[s.Index] {
			live[v] = true
		}
		for _, phi := range phisOf(s) {
			for k, from := range phi.Blocks {
				if v, ok := l.index[phi.Args[k]]; ok && from == b {
					live[v] = true
				}
			}
		}
	}
	return live
}

// values lists a set of values in their order.
func (l *lazyLiveness) values(live map[int32]bool) []Value {
	order := make([]int32, 0, len(live))
	for v := range live {
		order = append(order, v)
	}
	slices.Sort(order)
	values := make([]Value, len(order))
	for i, v := range order {
		values[i] = l.value[v]
	}
	return values
}

// phisOf are the phis at the start of a block.
func phisOf(b *Block) []*Instr {
	n := 0
	for n < len(b.Instrs) && b.Instrs[n].Op == OpPhi {
		n++
	}
	return b.Instrs[:n]
}

// successors are the blocks that a block's terminator may go to.
func successors(b *Block) []*Block { return b.Instrs[len(b.Instrs)-1].Blocks }

// compute walks each value from its uses back to its definition, which visits
// just the blocks in which it is live (Boissinot et al., "Fast Liveness Checking
// for SSA-Form Programs", call it path exploration).
func (l *lazyLiveness) compute(f *Func) error {
	blocks, err := f.Body()
	if err != nil {
		return err
	}
	l.number(f, blocks)
	w := liveWalk{l: l, stamp: make([]int32, len(blocks))}
	useBlocks, err := l.useBlocks(blocks)
	if err != nil {
		return err
	}
	for v, uses := range useBlocks {
		if err := w.walk(int32(v), uses); err != nil {
			return fmt.Errorf("%s: %w", f.Ref(), err)
		}
	}
	return nil
}

func (l *lazyLiveness) number(f *Func, blocks []*Block) {
	l.index = map[Value]int32{}
	add := func(v Value) {
		l.index[v] = int32(len(l.value))
		l.value = append(l.value, v)
	}
	for _, p := range f.Params {
		add(p)
	}
	l.in = make([][]int32, len(blocks))
	l.preds = make([][]*Block, len(blocks))
	for _, b := range blocks {
		for _, in := range b.Instrs {
			add(in)
		}
		for _, s := range successors(b) {
			l.preds[s.Index] = append(l.preds[s.Index], b)
		}
	}
}

// liveUse is one block in which a value is used: at its end by a phi of a
// successor, or somewhere within.
type liveUse struct {
	block *Block
	atEnd bool
}

// useBlocks lists for each value where it is used.
func (l *lazyLiveness) useBlocks(blocks []*Block) ([][]liveUse, error) {
	found := make([][]liveUse, len(l.value))
	add := func(v int32, u liveUse) {
		if n := len(found[v]); n == 0 || found[v][n-1] != u {
			found[v] = append(found[v], u)
		}
	}
	for _, b := range blocks {
		for _, in := range b.Instrs {
			if in.Op == OpPhi {
				for k, from := range in.Blocks {
					if v, ok := l.index[in.Args[k]]; ok {
						add(v, liveUse{from, true})
					}
				}
				continue
			}
			uses, err := l.uses(in)
			if err != nil {
				return nil, err
			}
			for _, v := range uses {
				add(v, liveUse{b, false})
			}
		}
	}
	return found, nil
}

// uses are the values that an instruction other than a phi reads.
func (l *lazyLiveness) uses(in *Instr) ([]int32, error) {
	args := in.Args
	if base, derived, ok, err := l.relocated(in); err != nil {
		return nil, err
	} else if ok {
		args = []Value{base, derived}
	}
	var uses []int32
	add := func(values []Value) {
		for _, v := range values {
			if i, ok := l.index[v]; ok && v.Type().Kind != TokenKind {
				uses = append(uses, i)
			}
		}
	}
	add(args)
	if in.Call != nil {
		add([]Value{in.Call.Callee})
		for _, b := range in.Call.Bundles {
			add(b.Args)
		}
	}
	return uses, nil
}

// liveWalk marks the blocks in which one value is live on entry.
type liveWalk struct {
	l     *lazyLiveness
	stamp []int32 // of each block: the value that was last found live there, plus one
	work  []*Block
	total int
}

func (w *liveWalk) walk(v int32, uses []liveUse) error {
	def, _ := w.l.value[v].(*Instr) // nil for a parameter, which is live from the entry on
	for _, u := range uses {
		// A use in the block of the definition comes after it: SSA form.
		if def == nil || u.block != def.Block {
			w.work = append(w.work, u.block)
		}
		for len(w.work) > 0 {
			b := w.work[len(w.work)-1]
			w.work = w.work[:len(w.work)-1]
			if w.stamp[b.Index] == v+1 || def != nil && b == def.Block {
				continue
			}
			w.stamp[b.Index] = v + 1
			w.l.in[b.Index] = append(w.l.in[b.Index], v)
			if w.total++; w.total > maxLiveIns {
				return fmt.Errorf("more than %d values are live on entry to its blocks", maxLiveIns)
			}
			w.work = append(w.work, w.l.preds[b.Index]...)
		}
	}
	return nil
}
