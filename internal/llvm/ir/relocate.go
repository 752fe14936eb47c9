package ir

import (
	"fmt"
	"strings"
	"sync"
)

// intrinsic returns the name of the intrinsic that an instruction calls, without "llvm.", or "" if it calls none.
func intrinsic(in *Instr) string {
	if in.Call == nil {
		return ""
	}
	f, ok := in.Call.Callee.(*Func)
	if !ok {
		return ""
	}
	name, ok := strings.CutPrefix(f.Name, "llvm.")
	if !ok {
		return ""
	}
	return name
}

func isIntrinsic(in *Instr, name string) bool {
	got := intrinsic(in)
	return got == name || strings.HasPrefix(got, name+".")
}

// relocated returns the base and the derived pointer of a gc.relocate. Its arguments are the statepoint's token and two indices into the gc-live bundle
// (LangRef, "llvm.experimental.gc.relocate"). It returns false for any other instruction, and for a relocate whose statepoint is undef or poison.
func (l *lazyLiveness) relocated(in *Instr) (base, derived Value, ok bool, err error) {
	if !isIntrinsic(in, "experimental.gc.relocate") || len(in.Args) != 3 {
		return nil, nil, false, nil
	}
	statepoint := l.statepointOf(in.Args[0])
	if statepoint == nil {
		return nil, nil, false, nil
	}
	live := bundle(statepoint, "gc-live")
	var pair [2]Value
	for k := range pair {
		i, isInt := smallConst(in.Args[1+k])
		if !isInt || i >= uint64(len(live)) {
			return nil, nil, false, fmt.Errorf("%s, line %d: gc.relocate names operand %s of the %d in the gc-live bundle",
				in.Block.Func.Ref(), in.Line, in.Args[1+k].Ref(), len(live))
		}
		pair[k] = live[i]
	}
	return pair[0], pair[1], true, nil
}

// Relocation returns the statepoint of a gc.relocate and the pair of pointers that it names. ok is false for any other instruction, and for a relocate
// whose statepoint is undef or poison. The error is that of the function's body, or says that the gc.relocate violates LangRef.
func (i *Instr) Relocation() (statepoint *Instr, pair Relocated, ok bool, err error) {
	if !isIntrinsic(i, "experimental.gc.relocate") {
		return nil, pair, false, nil
	}
	l, err := i.Block.Func.liveness()
	if err != nil {
		return nil, pair, false, err
	}
	pair.Base, pair.Derived, ok, err = l.relocated(i)
	if err != nil || !ok {
		return nil, pair, false, err
	}
	return l.statepointOf(i.Args[0]), pair, true, nil
}

// Relocated is the pair of pointers that a gc.relocate names: the derived pointer, which it relocates, and the base that it was derived from.
type Relocated struct{ Base, Derived Value }

// lazyRelocated holds the pairs of a function's gc.relocates by the call or invoke of their statepoint.
type lazyRelocated struct {
	once  sync.Once
	err   error
	pairs map[*Instr][]Relocated
}

// Relocated returns the pairs of the site's gc.relocates in program order, without repetitions. The error is that of the function's body, or names a
// gc.relocate that violates LangRef.
func (s *Site) Relocated() ([]Relocated, error) {
	r := &s.Func.computed().relocated
	r.once.Do(func() { r.err = r.collect(s.Func) })
	return r.pairs[s.Instr], r.err
}

func (r *lazyRelocated) collect(f *Func) error {
	blocks, err := f.Body()
	if err != nil {
		return err
	}
	l, err := f.liveness()
	if err != nil {
		return err
	}
	r.pairs = map[*Instr][]Relocated{}
	known := map[*Instr]map[Relocated]bool{}
	for _, b := range blocks {
		for _, in := range b.Instrs {
			base, derived, ok, err := l.relocated(in)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			site, pair := l.statepointOf(in.Args[0]), Relocated{base, derived}
			if known[site][pair] {
				continue
			}
			if known[site] == nil {
				known[site] = map[Relocated]bool{}
			}
			known[site][pair] = true
			r.pairs[site] = append(r.pairs[site], pair)
		}
	}
	return nil
}

// statepointOf returns the call or invoke that produced the token v. On the unwind path of an invoke the token is the landing pad.
func (l *lazyLiveness) statepointOf(v Value) *Instr {
	in, ok := v.(*Instr)
	if !ok {
		return nil
	}
	if in.Op != OpLandingPad {
		if in.Call == nil {
			return nil
		}
		return in
	}
	for _, pred := range l.preds[in.Block.Index] {
		if last := pred.Instrs[len(pred.Instrs)-1]; last.Op == OpInvoke {
			return last
		}
	}
	return nil
}

// bundle returns the operands of a call's bundle with a tag.
func bundle(in *Instr, tag string) []Value {
	for _, b := range in.Call.Bundles {
		if b.Tag == tag {
			return b.Args
		}
	}
	return nil
}

// smallConst returns the value of a constant integer of at most 64 bits.
func smallConst(v Value) (uint64, bool) {
	c, ok := v.(*Const)
	switch {
	case !ok:
	case c.Kind == ConstInt && c.Int.IsUint64():
		return c.Int.Uint64(), true
	case c.Kind == ConstZero && c.Typ.Kind == IntKind:
		return 0, true
	}
	return 0, false
}
