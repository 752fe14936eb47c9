package session

import (
	"context"
	"fmt"
	"slices"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// computed is one execution of an instruction of the activation.
type computed struct {
	instr *ir.Instr
	step  uint64 // number of instructions between the exit and this execution
	value interp.Value
	from  *computed   // for a phi, the execution that computed its value; nil if no instruction since the exit did
	args  []*computed // the operands; for a load also the stores that it read
	chose []taken     // for a phi, the branches taken since the last site
	// agreed is set when a later site has shown that native code has the same value. The instructions that computed the operands are then no suspects.
	agreed bool
}

// root follows phis to the instruction that computed the value, up to the first value that a site has shown to be the same in native code.
func (c *computed) root() *computed {
	for c.instr.Op == ir.OpPhi && c.from != nil && !c.from.agreed {
		c = c.from
	}
	return c
}

// taken is a branch that the run took.
type taken struct {
	cond *computed // the execution of the condition; nil if the condition is not an instruction
	br   *ir.Instr
	to   *ir.Block
	way  int // number of sites before the branch
}

// walk runs again from the exit to a difference, and records the execution that computed each value.
type walk struct {
	r       *Run
	seen    *seen
	last    map[ir.Value]*computed
	taken   []taken                    // the branches since the last site, each direction once
	way     int                        // number of sites so far
	count   int                        // number of recorded executions
	bytes   map[machine.Addr]*computed // the last store to each byte
	writes  map[*ir.Instr]*computed    // the last execution of each store, and of each call that may store
	ended   *computed                  // the instruction that ran last
	called  map[machine.Addr]*computed // the call that last changed a watched byte
	watched map[machine.Addr]byte      // the watched bytes before a call
}

// seen holds the values at sites that native code and the interpreter reached without a difference.
type seen struct {
	values map[*ir.Instr][]ir.Value // by site
	unsure map[ir.Value]bool        // the values that could not be compared at some site
}

// walk runs again from the exit to the current place of the run. It tracks the last store to each byte of watched.
func (r *Run) walk(ctx context.Context, sites *seen, watched []machine.Addr) (*walk, error) {
	end, over := r.Steps(), r.over()
	w := &walk{r: r, seen: sites, last: map[ir.Value]*computed{}, bytes: map[machine.Addr]*computed{}, writes: map[*ir.Instr]*computed{},
		called: map[machine.Addr]*computed{}, watched: map[machine.Addr]byte{}}
	if err := r.at(ctx, r.start); err != nil {
		return nil, err
	}
	for _, at := range watched {
		w.watched[at] = 0
	}
	defer r.jumped()
	for !r.over() && (over || r.Steps() < end) {
		if err := w.step(ctx); err != nil {
			return nil, err
		}
		if at := r.exec.At(0); !r.over() && r.exec.Depth() == 1 && r.lockstep.Site(at) && (over || r.Steps() < end) {
			w.agree(at)
		}
	}
	return w, nil
}

// step runs one instruction of the activation, including the functions that it calls.
func (w *walk) step(ctx context.Context) error {
	r := w.r
	if r.exec.Depth() > 1 { // the exit had inner frames
		return w.forward(ctx)
	}
	i := r.exec.At(0)
	c := &computed{instr: i, step: r.Steps()}
	if w.count++; w.count > maxComputed {
		return fmt.Errorf("the interpreter has run more than %d instructions since the exit: origins of values are recorded only up to that limit", maxComputed)
	}
	for _, a := range i.Args {
		c.args = append(c.args, w.last[a])
	}
	w.access(c)
	calls := i.Call != nil && !r.lockstep.Site(i)
	for at := range w.watched {
		if calls {
			w.watched[at] = w.byteAt(at)
		}
	}
	if err := w.forward(ctx); err != nil {
		return err
	}
	for !r.over() && r.exec.Depth() > 1 {
		if err := w.forward(ctx); err != nil {
			return err
		}
	}
	for at, was := range w.watched {
		if calls && !r.over() && w.byteAt(at) != was {
			w.called[at] = c
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

// maxComputed bounds the recorded executions of a run.
const maxComputed = 4 << 20

// access records the loads and stores of the next instruction. The effects of a call are unknown: the call may read every earlier store, and a later
// load may read stores of the call.
func (w *walk) access(c *computed) {
	i := c.instr
	switch {
	case i.Op == ir.OpStore || i.Op == ir.OpLoad || i.Op == ir.OpAtomicRMW || i.Op == ir.OpCmpXchg:
		at, t := i.Args[0], i.Typ
		if i.Op == ir.OpStore {
			at, t = i.Args[1], i.Args[0].Type()
		} else if i.Op == ir.OpCmpXchg {
			t = i.Args[1].Type()
		}
		is, _ := w.r.exec.Operand(0, at)
		addr, known := is.Uint()
		if !known {
			return
		}
		since := uint64(0)
		for n := range i.Block.Func.Module.Layout.Size(t) {
			if i.Op != ir.OpStore {
				if by := w.bytes[machine.Addr(addr+n)]; by != nil && !slices.Contains(c.args, by) {
					c.args, since = append(c.args, by), max(since, by.step)
				}
			}
			if i.Op != ir.OpLoad {
				w.bytes[machine.Addr(addr+n)] = c
			}
		}
		for _, by := range w.writes {
			if i.Op != ir.OpStore && by.instr.Call != nil && by.step > since {
				c.args = append(c.args, by)
			}
		}
	case i.Call == nil || w.r.lockstep.Site(i):
		return
	default:
		if callee, direct := i.Call.Callee.(*ir.Func); i.Call.Pure || direct && callee.StoresNothing() {
			return
		}
		for _, by := range w.writes {
			c.args = append(c.args, by)
		}
	}
	if i.Op != ir.OpLoad {
		w.writes[i] = c
	}
}

// forward runs one instruction of the activation, or the rest of its call.
func (w *walk) forward(ctx context.Context) error {
	r := w.r
	return r.forward(ctx, func() (*interp.Result, error) {
		if r.exec.Depth() > 1 {
			return r.exec.RunOut(ctx, 1)
		}
		return r.exec.Step(ctx)
	})
}

// writers lists the last stores to the watched bytes: a store of the activation, or a call that changed the bytes.
func (w *walk) writers() (list []*computed) {
	for at := range w.watched {
		last := w.bytes[at]
		if by := w.called[at]; by != nil && (last == nil || by.step > last.step) {
			last = by
		}
		if last != nil {
			list = append(list, last)
		}
	}
	return list
}

// byteAt returns a byte of the run's memory, or 0 if it cannot be read.
func (w *walk) byteAt(at machine.Addr) byte {
	var data, unknown [1]byte
	if w.r.machine.Peek(data[:], unknown[:], at) != nil {
		return 0
	}
	return data[0]
}

// enter records the branch to a block, and the values of its phis. A phi may use the previous value of another phi, so enter reads all before it sets
// any.
func (w *walk) enter(c *computed, to *ir.Block) {
	if len(c.instr.Blocks) > 1 {
		t := taken{br: c.instr, to: to, way: w.way}
		if len(c.args) > 0 {
			t.cond = c.args[0]
		}
		if !slices.ContainsFunc(w.taken, func(u taken) bool { return u.br == t.br && u.to == t.to }) {
			w.taken = append(w.taken, t)
		}
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
		p.chose = w.taken[:len(w.taken):len(w.taken)]
		p.value, _ = w.r.exec.Value(0, phi)
		now[phi] = p
	}
	for phi, p := range now {
		w.last[phi] = p
	}
}

// agree marks the values of a site that were the same on both sides, and drops how they were computed.
func (w *walk) agree(at *ir.Instr) {
	w.taken = nil
	w.way++
	for _, v := range w.seen.values[at] {
		if c := w.last[v]; c != nil && !w.seen.unsure[v] {
			c.agreed, c.args, c.from, c.chose = true, nil, nil, nil
		}
	}
}
