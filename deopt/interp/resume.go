package interp

import (
	"strings"

	"reframe/deopt/ir"
)

// resume runs from the middle of a function.
func (in *Interp) resume(p Point, values map[ir.Value]Value, ret []word) error {
	fn, err := in.function(p.Block.Func)
	if err != nil {
		return err
	}
	b := fn.blocks[p.Block.Index]
	if p.Index > 0 && p.Index < b.phis {
		return troublef(KindArgument, "cannot resume @%s among the phis of block %%%s", fn.ir.Name, p.Block.Name)
	}
	if values, err = complete(p, values); err != nil {
		return err
	}
	fr, err := in.enter(fn, ret)
	if err != nil {
		return err
	}
	defer in.leave(fn, fr)
	for key, v := range values {
		s, ok := fn.slots[key]
		if !ok {
			continue
		}
		if !alike(v.s, s.s) {
			return troublef(KindArgument, "%s is a value of type %v where %v is wanted", key.Ref(), v.Type(), s.s.typ)
		}
		copy(s.in(fr), v.w)
	}
	return in.exec(fr, b, p.Index)
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
