package interp

import (
	"maps"
	"slices"

	"example.com/reframe/internal/llvm/ir"
)

// Activation is one abstract frame to resume.
type Activation struct {
	// Point is the next instruction to run. In an activation that waits for a callee, it follows the call; for an invoke it is the start of the
	// normal destination.
	Point Point
	// Call is the call, invoke or statepoint for whose result the activation waits, nil if it does not wait. The result of a void call is ignored.
	Call *ir.Instr
	// Values holds the values that are live at Point, with the keys of [Interp.Resume].
	Values map[ir.Value]Value
}

// Missing returns the names of the values that are live at the activation's point and are not given. It excludes the result of Call.
func (a Activation) Missing() ([]string, error) {
	_, missing, err := complete(a.Point, a.Values)
	if err != nil {
		return nil, err
	}
	results := a.results()
	var names []string
	for _, v := range missing {
		if i, ok := v.(*ir.Instr); !ok || !slices.Contains(results, i) {
			names = append(names, v.Ref())
		}
	}
	return names, nil
}

// results returns the instructions that receive the result of Call: Call itself, the gc.results of a statepoint, and the phis after an invoke that
// use it.
func (a Activation) results() []*ir.Instr {
	if a.Call == nil {
		return nil
	}
	results := []*ir.Instr{a.Call}
	for _, r := range pendingResults(a.Point) {
		if r.Args[0] == ir.Value(a.Call) {
			results = append(results, r)
		}
	}
	for phi, from := range a.taken() {
		if from == ir.Value(a.Call) {
			results = append(results, phi)
		}
	}
	return results
}

// taken returns the phis at the start of an invoke's normal destination, each with its operand for the invoke's block.
func (a Activation) taken() map[*ir.Instr]ir.Value {
	if a.Call == nil || a.Call.Op != ir.OpInvoke {
		return nil
	}
	taken := map[*ir.Instr]ir.Value{}
	for _, phi := range a.Point.Block.Instrs {
		if phi.Op != ir.OpPhi {
			break
		}
		if k := slices.Index(phi.Blocks, a.Call.Block); k >= 0 && k < len(phi.Args) {
			taken[phi] = phi.Args[k]
		}
	}
	return taken
}

// check returns an error if the activation cannot be resumed.
func (a Activation) check() error {
	p := a.Point
	switch {
	case p.Block == nil || p.Block.Func == nil || p.Index < 0 || p.Index >= len(p.Block.Instrs):
		return troublef(KindArgument, "the block has no instruction at index %d", p.Index)
	case p.Index > 0 && p.Block.Instrs[p.Index].Op == ir.OpPhi:
		return troublef(KindArgument, "cannot resume @%s among the phis of block %%%s", p.Block.Func.Name, p.Block.Name)
	case a.Call != nil && (a.Call.Block == nil || a.Call.Block.Func != p.Block.Func):
		return troublef(KindArgument, "the call that @%s waits for belongs to another function", p.Block.Func.Name)
	case a.Call != nil && !a.behind():
		return troublef(KindArgument, "@%s does not resume after the call that it waits for", p.Block.Func.Name)
	}
	names, err := a.Missing()
	if err != nil {
		return err
	}
	if names != nil {
		return &MissingError{Func: p.Block.Func.Name, Block: p.Block.Name, Names: names}
	}
	return nil
}

// behind reports whether execution continues at Point after Call has returned: Point follows Call in its block, or is the start of the normal
// destination of an invoke.
func (a Activation) behind() bool {
	if a.Call.Op == ir.OpInvoke {
		return a.Point.Index == 0 && len(a.Call.Blocks) > 0 && a.Call.Blocks[0] == a.Point.Block
	}
	return a.Call.Op == ir.OpCall && a.Call.Block == a.Point.Block && a.Call.Index < a.Point.Index
}

// activate pushes a frame for an activation. The frame returns its result to ret.
func (in *Interp) activate(a Activation, ret []word) (*frame, error) {
	p := a.Point
	fn, err := in.function(p.Block.Func)
	if err != nil {
		return nil, err
	}
	values, _, err := complete(p, a.Values)
	if err != nil {
		return nil, err
	}
	fr, err := in.push(fn, ret, len(in.stack.live))
	if err != nil {
		return nil, err
	}
	b := fn.blocks[p.Block.Index]
	fr.pc = b.start + max(p.Index-b.phis, 0)
	taken := a.taken()
	fr.resumed = &activated{a.Call, map[ir.Value]bool{}}
	for key, v := range values {
		if phi, ok := key.(*ir.Instr); ok && taken[phi] != nil {
			continue
		}
		if err := fr.set(key, v); err != nil {
			return nil, err
		}
		fr.resumed.given[key] = true
	}
	defer fr.unfinished(false, func(b *block, n int64) { b.short -= n }) // the run starts inside the block
	if a.Call == nil || a.Call.Op != ir.OpInvoke {
		return fr, nil
	}
	// The frame resumes at the branch after the invoke, and the branch sets the phis. So set the operands that the branch reads.
	from := fn.blocks[a.Call.Block.Index]
	fr.pc = from.start + a.Call.Index - from.phis + 1
	given := map[ir.Value]*ir.Instr{}
	for _, phi := range p.Block.Instrs[:b.phis] {
		v, value := taken[phi], values[phi]
		if _, computed := fn.slots[v]; !computed || value.IsNone() || v == ir.Value(a.Call) {
			continue // a phi for which no value was given has no uses
		}
		if other := given[v]; other != nil && !values[other].Equal(value) {
			return nil, troublef(KindArgument, "%s and %s both have the operand %s, but were given different values", other.Ref(), phi.Ref(), v.Ref())
		}
		given[v], fr.resumed.given[v] = phi, true
		if err := fr.set(v, value); err != nil {
			return nil, err
		}
	}
	return fr, nil
}

// set sets the value of key in the frame. It ignores a key that the function does not have.
func (fr *frame) set(key ir.Value, v Value) error {
	s, ok := fr.fn.slots[key]
	if !ok {
		return nil
	}
	if v.s == nil || !alike(v.s, s.s) {
		return troublef(KindArgument, "%s is a value of type %v; expected %v", key.Ref(), v.Type(), s.s.typ)
	}
	copy(s.in(fr), v.w)
	return nil
}

// complete returns the values with which a frame starts at p, and the live values that were not given.
func complete(p Point, given map[ir.Value]Value) (values map[ir.Value]Value, missing []ir.Value, err error) {
	live, err := ir.LiveAt(p.Block, p.Index)
	if err != nil {
		return nil, nil, &trouble{KindModule, err}
	}
	values = map[ir.Value]Value{}
	for k, v := range given {
		if !v.IsNone() {
			values[k] = v
		}
	}
	for _, v := range live {
		if _, ok := values[v]; !ok {
			missing = append(missing, v)
		}
	}
	for _, r := range pendingResults(p) {
		token := r.Args[0]
		if _, ok := values[token]; ok {
			continue
		}
		if v, ok := values[r]; ok {
			values[token] = v
		} else {
			missing = append(missing, r)
		}
	}
	return values, missing, nil
}

// Tell adds the values that can be derived from those in values ([ir.Told]). All values must be those of one point in time, such as a recorded site.
func Tell(values map[ir.Value]Value) {
	for _, t := range ir.Told(slices.Collect(maps.Keys(values))) {
		of := t.Value.Type()
		if of.Kind == ir.IntKind {
			if n, known := values[t.By[0]].Big(); known {
				values[t.Value] = FromBig(of, n)
			}
			continue
		}
		whole, err := Undef(of)
		complete := err == nil
		for n, by := range t.By {
			part, _ := whole.Elem(n)
			v := values[by] // none if this value must also be derived, and could not be
			if complete = complete && v.s != nil && part.s != nil && alike(part.s, v.s); complete {
				copy(part.w, v.w)
			}
		}
		if complete {
			values[t.Value] = whole
		}
	}
}

// stacked pushes frames for activations, which are given innermost first. ret receives the result of the outermost one.
func (in *Interp) stacked(stack []Activation, ret []word) error {
	for _, a := range stack {
		if err := a.check(); err != nil {
			return err
		}
	}
	var owes *debt
	for k := len(stack) - 1; k >= 0; k-- {
		fr, err := in.activate(stack[k], ret)
		if err != nil {
			return err
		}
		fr.owes, owes = owes, nil
		if k == 0 {
			if stack[0].Point.Index == 0 && stack[0].Call == nil {
				// A run that starts at the beginning of a block also counts its phis as steps.
				b := fr.fn.blocks[stack[0].Point.Block.Index]
				in.run.steps += uint64(b.phis)
				b.short -= int64(b.phis)
			}
			return nil
		}
		// The next inner frame returns its result to this call.
		call := stack[k].Call
		if call == nil {
			return troublef(KindArgument, "@%s does not wait for a call", fr.fn.ir.Name)
		}
		inner, err := in.shapes.of(stack[k-1].Point.Block.Func.Sig.Elem)
		if err != nil {
			return err
		}
		out := fr.fn.slots[call]
		if ret = nil; out.s != nil && out.s.words > 0 {
			if !alike(inner, out.s) {
				return troublef(KindArgument, "@%s returns %v, but %s has type %v",
					stack[k-1].Point.Block.Func.Name, inner.typ, call.Ref(), out.s.typ)
			}
			ret = out.in(fr)
			owes = callPromises(call, nil, out).owed(fr) // without arguments: the process passed them before the run
		}
	}
	return nil
}
