package interp

import (
	"strings"

	"example.com/reframe/internal/llvm/ir"
)

// The intrinsics of stack maps: LLVM's "Stack maps and patch points" and
// "Garbage Collection Safepoints in LLVM".

const statepointPrefix = "llvm.experimental.gc.statepoint"

// calleeName is the name of the function that a call names, or "".
func calleeName(i *ir.Instr) string {
	if i.Call == nil {
		return ""
	}
	f, ok := i.Call.Callee.(*ir.Func)
	if !ok {
		return ""
	}
	return f.Name
}

// statepointResult is the type that the callee of a statepoint returns, nil
// where i is no statepoint. The token's place in the frame holds that value.
func statepointResult(i *ir.Instr) *ir.Type {
	if !strings.HasPrefix(calleeName(i), statepointPrefix) || len(i.Args) < 5 {
		return nil
	}
	var t *ir.Type
	if len(i.Call.ElemTypes) > 2 {
		t = i.Call.ElemTypes[2]
	}
	if p := i.Args[2].Type(); t == nil && p != nil {
		t = p.Elem
	}
	if t == nil || t.Kind != ir.FuncKind {
		return ir.Void
	}
	return t.Elem
}

// counted reads the number of call arguments at position n and returns the
// arguments after position first.
func (d *decoder) counted(i *ir.Instr, n, first int) ([]slot, error) {
	args, err := d.operands(i, len(i.Args))
	if err != nil {
		return nil, err
	}
	if len(args) > n {
		if count, ok := constantIndex(i.Args[n]); ok && count <= uint64(len(args)) && first+int(count) <= len(args) {
			return args[first : first+int(count)], nil
		}
	}
	return nil, troublef(KindModule, "%s does not say how many arguments it passes", i.Call.Callee.Ref())
}

// patchpoint (id, bytes, target, count, arguments…, live values…) calls its
// target; with a null target it is a place for code that is not there yet.
func (d *decoder) patchpoint(i *ir.Instr, out slot) (step, error) {
	args, err := d.counted(i, 3, 4)
	if err != nil {
		return nil, err
	}
	if c, ok := i.Args[2].(*ir.Const); ok && c.Kind == ir.ConstNull {
		return sled(out), nil
	}
	return d.callOf(i, i.Args[2], args, out)
}

// sled runs the nops of a statepoint that was not patched: it calls nothing, and the result is whatever its registers contain.
func sled(out slot) step {
	return func(fr *frame) error {
		out.s.fillUndefined(out.in(fr))
		return nil
	}
}

// statepoint (id, bytes, target, count, flags, arguments…, 0, 0) calls its target, but where bytes are to be patched.
func (d *decoder) statepoint(i *ir.Instr, out slot) (step, error) {
	args, err := d.counted(i, 3, 5)
	if err != nil {
		return nil, err
	}
	if i.Sled() {
		return sled(out), nil
	}
	return d.callOf(i, i.Args[2], args, out)
}

// relocated returns the gc-live operand that a gc.relocate(token, base, derived) refers to. Nothing moves here, so its value is the operand's own.
func (d *decoder) relocated(i *ir.Instr) (slot, error) {
	if len(i.Args) == 3 {
		token, ok := i.Args[0].(*ir.Instr)
		k, known := constantIndex(i.Args[2])
		if ok && token.Op == ir.OpLandingPad {
			token = d.invokeOf(token.Block)
			ok = token != nil
		}
		if ok && known && token.Call != nil {
			live, err := d.bundle(token, "gc-live")
			if err != nil {
				return slot{}, err
			}
			if k < uint64(len(live)) {
				return live[k], nil
			}
		}
	}
	return slot{}, unsupported("", "a gc.relocate whose token is no statepoint with a gc-live bundle")
}

// invokeOf is the invoke that unwinds to a block, nil where none does. Of a block where statepoints do it is
// the only one.
func (d *decoder) invokeOf(pad *ir.Block) *ir.Instr {
	if d.invokes == nil {
		d.invokes = map[*ir.Block]*ir.Instr{}
		for _, b := range d.fn.blocks {
			if last := b.ir.Instrs[len(b.ir.Instrs)-1]; last.Op == ir.OpInvoke && len(last.Blocks) == 2 {
				d.invokes[last.Blocks[1]] = last
			}
		}
	}
	return d.invokes[pad]
}
