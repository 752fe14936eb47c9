package interp

import (
	"strings"

	"example.com/reframe/internal/llvm/ir"
)

// pendingResults returns the gc.results that a run from p can reach without running their statepoint. The statepoint of such a gc.result ran before
// p.
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

// pending reports whether the statepoint token has run at p, and its gc.result r has not.
func pending(p Point, r, token *ir.Instr) bool {
	if r.Block != token.Block {
		return reaches(p, r, token)
	}
	return p.Block == r.Block && token.Index < p.Index && p.Index <= r.Index
}

// reaches reports whether a path from p reaches the instruction `to` without passing the instruction `before`.
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
