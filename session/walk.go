package session

import (
	"context"
	"slices"

	"reframe/deopt/interp"
	"reframe/deopt/ir"
	"reframe/deopt/machine"
)

// computed is one time that an instruction of the activation was run.
type computed struct {
	instr *ir.Instr
	step  uint64 // instructions before it, since the exit
	value interp.Value
	from  *computed // of a phi: what its value is of; nil where that is no instruction's, or was there at the exit
	args  []*computed
	// agreed says that a site has shown it since, and native code had the same. What it was computed from does not matter any more.
	agreed bool
}

// root follows phis to what was computed, as far as no site has shown that native code has it.
func (c *computed) root() *computed {
	for c.instr.Op == ir.OpPhi && c.from != nil && !c.from.agreed {
		c = c.from
	}
	return c
}

// taken is a branch that the run took.
type taken struct {
	cond *computed // nil where it is none of an instruction
	br   *ir.Instr
	to   *ir.Block
}

// walk is a run from the exit once more, of which it is kept what each value came of.
type walk struct {
	r      *Run
	seen   *seen
	last   map[ir.Value]*computed
	taken  []taken   // since the last site
	ended  *computed // the last instruction of all
	stored map[machine.Addr]*computed
	words  map[machine.Addr]uint64 // that are watched
}

// seen is what sites have shown at which both agreed.
type seen struct {
	values map[*ir.Instr][]ir.Value // by the site
	unsure map[ir.Value]bool        // of which some site did not tell whether they are the same
}

// walk runs from the exit to where the run stands. watched are words of memory of which the last store is kept.
func (r *Run) walk(ctx context.Context, sites *seen, watched []machine.Addr) (*walk, error) {
	end, over := r.Steps(), r.over()
	w := &walk{r: r, seen: sites, last: map[ir.Value]*computed{}, stored: map[machine.Addr]*computed{}, words: map[machine.Addr]uint64{}}
	if err := r.at(ctx, r.start); err != nil {
		return nil, err
	}
	for _, at := range watched {
		w.words[at] = w.word(at)
	}
	defer r.jumped()
	for !r.over() && (over || r.Steps() < end) {
		if err := w.step(ctx); err != nil {
			return nil, err
		}
		if at := r.exec.At(0); !r.over() && r.exec.Depth() == 1 && r.beside.Site(at) && (over || r.Steps() < end) {
			w.agree(at)
		}
	}
	return w, nil
}

// step runs one instruction of the activation, with what it calls.
func (w *walk) step(ctx context.Context) error {
	r := w.r
	if r.exec.Depth() > 1 { // a frame further in, that the exit had
		return w.forward(ctx, nil)
	}
	i := r.exec.At(0)
	c := &computed{instr: i, step: r.Steps()}
	for _, a := range i.Args {
		c.args = append(c.args, w.last[a])
	}
	if err := w.forward(ctx, c); err != nil {
		return err
	}
	for !r.over() && r.exec.Depth() > 1 {
		if err := w.forward(ctx, c); err != nil {
			return err
		}
	}
	w.ended = c
	if r.over() {
		return nil
	}
	if is, ok := r.exec.Value(0, i); ok {
		c.value = is
		w.last[i] = c
	}
	if i.Index == len(i.Block.Instrs)-1 {
		w.enter(c, r.exec.At(0).Block)
	}
	return nil
}

// forward runs one instruction, or a call of an instruction where nothing of memory is watched.
func (w *walk) forward(ctx context.Context, by *computed) error {
	r := w.r
	err := r.forward(ctx, func() (*interp.Result, error) {
		if r.exec.Depth() > 1 && len(w.words) == 0 {
			return r.exec.RunOut(ctx, 1)
		}
		return r.exec.Step(ctx)
	})
	if by != nil && stores(by.instr) {
		for at, was := range w.words {
			if is := w.word(at); is != was {
				w.words[at], w.stored[at] = is, by
			}
		}
	}
	return err
}

// stores says that an instruction may change memory.
func stores(i *ir.Instr) bool {
	return i.Call != nil || i.Op == ir.OpStore || i.Op == ir.OpAtomicRMW || i.Op == ir.OpCmpXchg
}

// word is memory as the run has it; what cannot be read is 0.
func (w *walk) word(at machine.Addr) (is uint64) {
	var data, unknown [8]byte
	if w.r.machine.Peek(data[:], unknown[:], at) != nil {
		return 0
	}
	return w.r.stack.Frames[0].View().Target().Arch().Order.Uint64(data[:])
}

// enter takes what the phis of a block have taken, all at once.
func (w *walk) enter(c *computed, to *ir.Block) {
	if len(c.instr.Blocks) > 1 {
		t := taken{br: c.instr, to: to}
		if len(c.args) > 0 {
			t.cond = c.args[0]
		}
		w.taken = append(w.taken, t)
	}
	now := map[ir.Value]*computed{}
	for _, phi := range to.Instrs {
		if phi.Op != ir.OpPhi {
			break
		}
		p := &computed{instr: phi, step: c.step}
		if k := slices.Index(phi.Blocks, c.instr.Block); k >= 0 {
			p.from = w.last[phi.Args[k]]
		}
		p.value, _ = w.r.exec.Value(0, phi)
		now[phi] = p
	}
	for phi, p := range now {
		w.last[phi] = p
	}
}

// agree takes note of what a site has shown, where both came to it and had the same.
func (w *walk) agree(at *ir.Instr) {
	w.taken = nil
	for _, v := range w.seen.values[at] {
		if c := w.last[v]; c != nil && !w.seen.unsure[v] {
			c.agreed, c.args, c.from = true, nil, nil
		}
	}
}
