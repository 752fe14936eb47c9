package deopt

import (
	"fmt"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
)

// point returns the place in fn where the frame resumes.
func (f *Frame) point(fn *ir.Func) (interp.Point, error) {
	if _, err := fn.Body(); err != nil {
		return interp.Point{}, err
	}
	switch r := f.Resume; {
	case r.After != "":
		i := f.match.Site.Instr
		if i.Op == ir.OpInvoke {
			return interp.Point{Block: i.Blocks[0]}, nil
		}
		return interp.Point{Block: i.Block, Index: i.Index + 1}, nil
	case r.At != "":
		i := f.match.Site.Instr
		return interp.Point{Block: i.Block, Index: i.Index}, nil
	}
	b := fn.Block(f.Resume.Block)
	if b == nil {
		return interp.Point{}, fmt.Errorf("@%s has no block %%%s", fn.Name, f.Resume.Block)
	}
	return interp.Point{Block: b}, nil
}

// enter sets the phis of the block after an invoke to their values from the invoke's own block, as far as they are known.
func (f *Frame) enter(p interp.Point, values map[ir.Value]interp.Value) error {
	if f.Resume.After == "" || f.match.Site.Instr.Op != ir.OpInvoke {
		return nil
	}
	taken := map[*ir.Instr]interp.Value{}
	for _, phi := range p.Block.Instrs {
		if phi.Op != ir.OpPhi {
			break
		}
		for k, from := range phi.Blocks {
			if from != f.match.Site.Instr.Block || k >= len(phi.Args) {
				continue
			}
			v, known, err := incoming(phi.Args[k], values)
			if err != nil {
				return fmt.Errorf("%s: %w", phi.Ref(), err)
			}
			if known {
				taken[phi] = v
			}
		}
	}
	// All phis take their values at once: one phi may be the input of another.
	for _, phi := range p.Block.Instrs {
		if phi.Op != ir.OpPhi {
			break
		}
		delete(values, phi)
	}
	for phi, v := range taken {
		values[phi] = v
	}
	return nil
}

// incoming returns the input of a phi: a constant, or a value that may be known.
func incoming(v ir.Value, values map[ir.Value]interp.Value) (interp.Value, bool, error) {
	c, ok := v.(*ir.Const)
	if !ok {
		out, known := values[v]
		return out, known, nil
	}
	unset, err := interp.Undef(c.Typ)
	if err != nil {
		return interp.Value{}, false, err
	}
	switch c.Kind {
	case ir.ConstInt, ir.ConstFloat:
		return interp.FromBig(c.Typ, c.Int), true, nil
	case ir.ConstNull:
		return interp.FromUint(c.Typ, 0), true, nil
	case ir.ConstUndef, ir.ConstPoison:
		return unset, true, nil
	}
	return interp.Value{}, false, fmt.Errorf("it takes the constant %s after an invoke, which is not supported", c.Ref())
}

// isResult reports whether a name denotes the result of the pending call.
func (f *Frame) isResult(name string) bool {
	call, result, _ := f.Awaited()
	if call == nil {
		return false
	}
	return call.Ref() == name || result != nil && result.Ref() == name
}
