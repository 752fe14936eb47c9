package gclint

import (
	"fmt"
	"slices"

	"example.com/reframe/internal/llvm/ir"
)

// maxPairs limits the comparisons of one base with one derived pointer. Two webs of phis have as many pairs as the product of their sizes.
const maxPairs = 1 << 16

// pairs reports the pairs of gc.relocates whose base is not the base of their derived pointer.
func (w *flow) pairs(r *Report) {
	for _, b := range w.order {
		for _, in := range b.Instrs {
			at, ok := w.relocated[in]
			if !ok || !w.p.managed(at.pair.Derived.Type()) {
				continue
			}
			base, derived := at.pair.Base, at.pair.Derived
			f := Finding{Value: derived.Ref(), Origin: base.Ref(), Safepoint: safepointOf(at.statepoint)}
			call := fmt.Sprintf("at the safepoint at line %d (call of %s)", at.statepoint.Line, calleeName(at.statepoint))
			if inner, sure := w.notBase(base, map[ir.Value]bool{}); inner != nil {
				f.Rule, f.Certainty = WrongBase, sure
				f.What = fmt.Sprintf("%s is the base of %s %s, but %s", base.Ref(), derived.Ref(), call, w.why(inner, base))
				if base == derived {
					f.Rule = OwnBase
					f.What = fmt.Sprintf("%s is its own base %s, but %s", derived.Ref(), call, w.why(inner, base))
				}
				f.Do = fmt.Sprintf("list the pointer to the start of the object in the gc-live bundle, and name it as the base of %s", derived.Ref())
				r.add(in, f)
				continue
			}
			d := derivation{w: w, known: map[[2]ir.Value]bool{}}
			if !d.same(derived, base) {
				f.Rule, f.Certainty = WrongBase, Likely
				if _, param := derived.(*ir.Param); param || w.foreign(d.of) || w.foreign(d.from) {
					f.Certainty = Possible // a caller may pass a derived pointer and its base
				}
				f.What = fmt.Sprintf("%s is the base of %s %s, but %s is not computed from it on each path: %s and %s differ", base.Ref(), derived.Ref(), call,
					derived.Ref(), d.of.Ref(), d.from.Ref())
				f.Do = fmt.Sprintf("name the pointer that %s is computed from as its base", derived.Ref())
				r.add(in, f)
			}
		}
	}
}

// foreign reports whether code outside of the function may have computed a pointer from another managed pointer: it was loaded, or a call with a managed
// pointer as an argument returned it.
func (w *flow) foreign(v ir.Value) bool {
	in, ok := v.(*ir.Instr)
	if !ok {
		return false
	}
	switch in.Op {
	case ir.OpLoad, ir.OpCmpXchg, ir.OpAtomicRMW, ir.OpVAArg:
		return true
	case ir.OpCall, ir.OpInvoke, ir.OpCallBr:
		args := in.Args
		if isIntrinsic(in, "llvm.experimental.gc.result") && len(args) == 1 {
			if call, ok := args[0].(*ir.Instr); ok && isStatepoint(call) {
				args = call.Args
			}
		}
		return slices.ContainsFunc(args, func(a ir.Value) bool { return w.p.holds(a.Type()) })
	}
	return false
}

// why explains why a pointer is not the base of another one.
func (w *flow) why(inner *ir.Instr, base ir.Value) string {
	text := inner.Ref() + " is computed from " + inner.Args[0].Ref() + " with an offset"
	if ir.Value(inner) == base {
		text = "it is computed from " + inner.Args[0].Ref() + " with an offset"
	}
	return text
}

// through returns the pointer from which v is computed without an offset, or v.
func (w *flow) through(v ir.Value) ir.Value {
	for range maxPairs {
		in, ok := v.(*ir.Instr)
		if !ok {
			return v
		}
		at, relocated := w.relocated[in]
		switch {
		case relocated:
			v = at.pair.Derived // a relocation keeps the object and the offset
		case in.Op == ir.OpBitCast, in.Op == ir.OpFreeze, in.Op == ir.OpGEP && zeroOffset(in),
			in.Op == ir.OpAddrSpaceCast && w.p.managed(in.Args[0].Type()),
			isIntrinsic(in, "llvm.launder.invariant.group", "llvm.strip.invariant.group"):
			v = in.Args[0]
		default:
			return v
		}
	}
	return v
}

// notBase returns the getelementptr by which a pointer has an offset from the start of its object, or nil. A pointer that the function does not
// compute, such as a parameter or a load, counts as a base, as in rewrite-statepoints-for-gc.
func (w *flow) notBase(v ir.Value, seen map[ir.Value]bool) (inner *ir.Instr, sure Certainty) {
	v = w.through(v)
	in, ok := v.(*ir.Instr)
	if !ok || seen[v] {
		return nil, ""
	}
	seen[v] = true
	var from []ir.Value
	switch in.Op {
	case ir.OpGEP:
		from, n, known := w.sum(in)
		switch start, computed := from.(*ir.Instr); {
		case isConst(from): // an offset from null does not point into an object
			return nil, ""
		case known && n == 0: // the offsets cancel out
			return w.notBase(from, seen)
		case !known: // the offset may be zero
			return in, Likely
		case computed && (start.Op == ir.OpPhi || start.Op == ir.OpSelect): // null on some path, or inside of the object
			return in, Likely
		}
		return in, Certain
	case ir.OpPhi:
		from = in.Args
	case ir.OpSelect:
		from = in.Args[1:3]
	}
	for _, u := range from {
		if inner, _ = w.notBase(u, seen); inner != nil {
			return inner, Likely
		}
	}
	return nil, ""
}

// sum follows a chain of getelementptrs to the pointer at its start, and adds their offsets. known is false if an offset is not constant.
func (w *flow) sum(in *ir.Instr) (start ir.Value, n uint64, known bool) {
	known = true
	start = in
	for range maxPairs {
		next, ok := start.(*ir.Instr)
		if !ok || next.Op != ir.OpGEP {
			break
		}
		one, ok := offset(next)
		n, known, start = n+one, known && ok, w.through(next.Args[0])
	}
	if width := in.Block.Func.Module.Layout.IndexBits(in.Args[0].Type().AddrSpace); width < 64 {
		n &= 1<<width - 1
	}
	return start, n, known
}

func isConst(v ir.Value) bool {
	_, ok := v.(*ir.Const)
	return ok
}

// derivation compares the objects of two pointers.
type derivation struct {
	w        *flow
	known    map[[2]ir.Value]bool // pairs that were compared; a pair that is being compared counts as equal
	of, from ir.Value             // the first difference
}

// same reports whether two pointers point into the same object on each path, as far as the function shows.
func (d *derivation) same(derived, base ir.Value) bool {
	for range maxPairs {
		derived = d.w.through(derived)
		in, ok := derived.(*ir.Instr)
		if !ok || in.Op != ir.OpGEP && !isIntrinsic(in, "llvm.ptrmask") {
			break
		}
		derived = in.Args[0]
	}
	base = d.w.through(base)
	key := [2]ir.Value{derived, base}
	if same, ok := d.known[key]; ok {
		return same
	}
	if derived == base || len(d.known) > maxPairs {
		return true
	}
	d.known[key] = true
	same := d.compare(derived, base)
	d.known[key] = same
	if !same && d.of == nil {
		d.of, d.from = derived, base
	}
	return same
}

func (d *derivation) compare(derived, base ir.Value) bool {
	if _, isConst := derived.(*ir.Const); isConst { // a constant does not point to an object that moves
		return true
	}
	if c, isConst := base.(*ir.Const); isConst {
		return c.Kind == ir.ConstUndef || c.Kind == ir.ConstPoison
	}
	x, _ := derived.(*ir.Instr)
	y, _ := base.(*ir.Instr)
	both := func(op ir.Op) bool { return x != nil && y != nil && x.Op == op && y.Op == op }
	switch {
	case both(ir.OpPhi) && x.Block == y.Block:
		for k, from := range x.Blocks {
			for j, other := range y.Blocks {
				if from == other {
					if d.w.reached[from.Index] && !d.same(x.Args[k], y.Args[j]) {
						return false
					}
					break
				}
			}
		}
		return true
	case both(ir.OpSelect) && x.Args[0] == y.Args[0]:
		return d.same(x.Args[1], y.Args[1]) && d.same(x.Args[2], y.Args[2])
	}
	// One of the two blocks dominates the other, so a value of the dominating block is the same on each edge into the other block.
	same, split := false, false
	if from, blocks := alternatives(x); from != nil {
		split, same = true, d.each(from, blocks, func(v ir.Value) bool { return d.same(v, base) })
	}
	if from, blocks := alternatives(y); !same && from != nil {
		split, same = true, d.each(from, blocks, func(v ir.Value) bool { return d.same(derived, v) })
	}
	if split {
		return same
	}
	return unknownObject(x) || unknownObject(y)
}

// alternatives returns the values between which a phi or a select chooses, and for a phi the block of each value.
func alternatives(in *ir.Instr) ([]ir.Value, []*ir.Block) {
	switch {
	case in == nil:
	case in.Op == ir.OpPhi:
		return in.Args, in.Blocks
	case in.Op == ir.OpSelect:
		return in.Args[1:3], nil
	}
	return nil, nil
}

func (d *derivation) each(values []ir.Value, from []*ir.Block, ok func(ir.Value) bool) bool {
	for k, v := range values {
		if (from == nil || d.w.reached[from[k].Index]) && !ok(v) {
			return false
		}
	}
	return true
}

// unknownObject reports whether a pointer may equal another one through a computation that this package does not follow: an element of a vector, an
// integer, or the result of an intrinsic.
func unknownObject(in *ir.Instr) bool {
	if in == nil {
		return false
	}
	switch in.Op {
	case ir.OpExtractElement, ir.OpInsertElement, ir.OpShuffleVector, ir.OpIntToPtr, ir.OpAddrSpaceCast, ir.OpExtractValue, ir.OpGEP:
		return true
	}
	return propagates(in)
}
