package ir

import (
	"fmt"
	"strings"
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
