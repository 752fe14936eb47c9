package ir

import (
	"fmt"
	"slices"
	"sync"
)

// maxLiveIns limits the live values of one function, summed over the entries of all blocks. Only a hostile function has more.
const maxLiveIns = 32 << 20

// lazyLiveness holds the liveness of a function and the data to compute it.
type lazyLiveness struct {
	once  sync.Once
	err   error
	index map[Value]int32 // parameters in order, then instructions in program order
	value []Value
	in    [][]int32 // values live on entry to each block, without the block's own phis
	preds [][]*Block
}

// LiveAt returns the parameters and instructions whose values are needed to continue at instruction index of b: those that some path from there reads
// before it computes them again. At the beginning of a block, or among its phis, the phis have taken their values already, so phis that are read are
// included. Parameters come first, in order, then instructions in program order.
//
// Tokens are never included. A gc.relocate counts as a read of the base and the derived pointer in the gc-live bundle of its statepoint. A gc.result reads
// the result of the call, so it needs no earlier value.
func LiveAt(b *Block, index int) (values []Value, err error) {
	err = LiveEach(b, []int{index}, func(_ int, live []Value) error {
		values = live
		return nil
	})
	return values, err
}

// LiveEach calls visit with the result of LiveAt for each index; indices must be in descending order. It walks through the block once. It stops at an error
// of visit.
func LiveEach(b *Block, indices []int, visit func(index int, live []Value) error) error {
	for k, index := range indices {
		if index < 0 || index > len(b.Instrs) || k > 0 && index > indices[k-1] {
			return fmt.Errorf("block %s has no instruction %d", b.Ref(), index)
		}
	}
	l, err := b.Func.liveness()
	if err != nil {
		return err
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

// liveness returns the liveness of a function. It is computed at the first call.
func (f *Func) liveness() (*lazyLiveness, error) {
	l := &f.computed().live
	l.once.Do(func() { l.err = l.compute(f) })
	return l, l.err
}

// liveOut returns the values that are live at the end of a block, before the phis of its successors read their operands.
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

// values returns a set of values in order.
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

// phisOf returns the phis at the start of a block.
func phisOf(b *Block) []*Instr {
	n := 0
	for n < len(b.Instrs) && b.Instrs[n].Op == OpPhi {
		n++
	}
	return b.Instrs[:n]
}

// successors returns the successors of a block.
func successors(b *Block) []*Block { return b.Instrs[len(b.Instrs)-1].Blocks }

// compute walks each value from its uses back to its definition. This visits only the blocks in which the value is live (Boissinot et al., "Fast Liveness
// Checking for SSA-Form Programs", call it path exploration).
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

// liveUse is a use of a value in a block: at the block's end by a phi of a successor, or within the block.
type liveUse struct {
	block *Block
	atEnd bool
}

// useBlocks returns the uses of each value.
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

// uses returns the values that an instruction other than a phi reads.
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
	stamp []int32 // for each block, v+1 of the value v that was last marked live on its entry
	work  []*Block
	total int
}

func (w *liveWalk) walk(v int32, uses []liveUse) error {
	def, _ := w.l.value[v].(*Instr) // nil for a parameter, which is live from the entry on
	for _, u := range uses {
		// In SSA form, a use in the defining block comes after the definition.
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
