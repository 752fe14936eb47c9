package interp

import (
	"strings"

	"reframe/deopt/ir"
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
		return func(fr *frame) error {
			out.s.fillUndefined(out.in(fr))
			return nil
		}, nil
	}
	return d.callOf(i, i.Args[2], args, out)
}

// statepoint (id, bytes, target, count, flags, arguments…, 0, 0) calls its target.
func (d *decoder) statepoint(i *ir.Instr, out slot) (step, error) {
	args, err := d.counted(i, 3, 5)
	if err != nil {
		return nil, err
	}
	return d.callOf(i, i.Args[2], args, out)
}

// relocated finds the gc-live operand that a gc.relocate(token, base, derived)
// stands for. Nothing moves here, so it is the operand's own value.
func (d *decoder) relocated(i *ir.Instr) (slot, error) {
	if len(i.Args) == 3 {
		token, ok := i.Args[0].(*ir.Instr)
		k, known := constantIndex(i.Args[2])
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

// complete returns the values that start a frame at p, or a [*MissingError] that
// names the live ones which were not given.
func complete(p Point, given map[ir.Value]Value) (map[ir.Value]Value, error) {
	live, err := ir.LiveAt(p.Block, p.Index)
	if err != nil {
		return nil, &trouble{KindModule, err}
	}
	values := map[ir.Value]Value{}
	for k, v := range given {
		if !v.IsNone() {
			values[k] = v
		}
	}
	var names []string
	for _, v := range live {
		if _, ok := values[v]; !ok {
			names = append(names, v.Ref())
		}
	}
	for _, r := range pendingResults(p) {
		token := r.Args[0]
		if _, ok := values[token]; ok {
			continue
		}
		v, ok := values[r]
		if !ok {
			names = append(names, r.Ref())
			continue
		}
		values[token] = v
	}
	if names != nil {
		return nil, &MissingError{Func: p.Block.Func.Name, Block: p.Block.Name, Names: names}
	}
	return values, nil
}

// pendingResults finds the gc.results that can be reached from p and whose
// statepoint is not run again before: their statepoint ran before p.
func pendingResults(p Point) []*ir.Instr {
	body, err := p.Block.Func.Body()
	if err != nil {
		return nil
	}
	var found []*ir.Instr
	for _, b := range body {
		for _, r := range b.Instrs {
			if !strings.HasPrefix(calleeName(r), "llvm.experimental.gc.result") || len(r.Args) != 1 {
				continue
			}
			if token, ok := r.Args[0].(*ir.Instr); ok && pending(p, r, token) {
				found = append(found, r)
			}
		}
	}
	return found
}

// pending says whether the statepoint token ran before p and its result r is
// still to come.
func pending(p Point, r, token *ir.Instr) bool {
	if r.Block != token.Block {
		return reaches(p, r, token)
	}
	return p.Block == r.Block && token.Index < p.Index && p.Index <= r.Index
}

// reaches says whether some path from p comes to the instruction to without
// running the instruction before first.
func reaches(p Point, to, before *ir.Instr) bool {
	seen := map[*ir.Block]bool{}
	blocks, start := []*ir.Block{p.Block}, p.Index
	for len(blocks) > 0 {
		b := blocks[len(blocks)-1]
		blocks = blocks[:len(blocks)-1]
		blocked := false
		for _, i := range b.Instrs[start:] {
			if i == to {
				return true
			}
			if blocked = i == before; blocked {
				break
			}
		}
		start = 0
		if blocked {
			continue
		}
		for _, next := range b.Instrs[len(b.Instrs)-1].Blocks {
			if !seen[next] {
				seen[next] = true
				blocks = append(blocks, next)
			}
		}
	}
	return false
}
