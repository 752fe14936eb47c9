package interp

import (
	"strings"

	"example.com/reframe/internal/llvm/ir"
)

// This file implements the intrinsics of stack maps: LLVM's "Stack maps and patch points" and "Garbage Collection Safepoints in LLVM".

const statepointPrefix = "llvm.experimental.gc.statepoint"

// calleeName returns the name of the function that a call names, or "".
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

// statepointResult returns the result type of a statepoint's callee, nil if i is not a statepoint. The token's slot in the frame holds the callee's
// result.
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

// counted returns the call arguments of a patchpoint or statepoint. Operand n is their number, and operand first is the first of them.
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
	return nil, troublef(KindModule, "%s has an invalid count of arguments", i.Call.Callee.Ref())
}

// patchpoint decodes patchpoint(id, bytes, target, count, arguments…, live values…). It calls its target. If the target is null, it calls nothing,
// because the runtime patches code into the reserved bytes later.
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

// sled returns the step of a statepoint or patchpoint whose reserved bytes are not patched. It calls nothing, and its result is undefined.
func sled(out slot) step {
	return func(fr *frame) error {
		out.s.fillUndefined(out.in(fr))
		return nil
	}
}

// statepoint decodes statepoint(id, bytes, target, count, flags, arguments…, 0, 0). It calls its target if bytes is 0; otherwise bytes of code are
// reserved for patching.
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

// relocated returns the slot of the gc-live operand to which a gc.relocate(token, base, derived) refers. The interpreter moves no objects, so this
// operand is the relocated pointer.
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
	return slot{}, unsupported("", "a gc.relocate whose token is not a statepoint with a gc-live bundle")
}

// invokeOf returns the invoke that unwinds to a block, or nil. If the block has gc.relocates, only one invoke unwinds to it.
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
