package sites

import "example.com/reframe/internal/llvm/ir"

// CourseOfModule returns the orders in which a function reaches its sites; place k+1 is sites[k]. sites are in program order, and none is in an unreachable
// block. The function may skip a guard.
func CourseOfModule(f *ir.Func, sites []*ir.Site) *Course {
	blocks, err := f.Body()
	if err != nil || len(blocks) == 0 {
		return nil
	}
	m := &moduleCourse{Course: newCourse(len(sites) + 1), sites: sites, in: make([][]int32, len(blocks)), seen: make([]int32, len(blocks))}
	for k, s := range sites {
		b := s.Instr.Block.Index
		m.in[b] = append(m.in[b], int32(k+1))
	}
	if int64(len(blocks))*int64(len(sites)+1) > MaxSteps {
		return nil
	}
	m.findLoops(blocks)
	m.enter(0, blocks[0])
	for k, s := range sites {
		place := k + 1
		m.ends[place] = LeavesFunction(s) // the code after a deoptimize call never runs and may be missing
		if isGuard(s) {
			continue
		}
		own := m.in[s.Instr.Block.Index]
		for n, other := range own {
			if other == int32(place) {
				m.pass(place, s.Instr.Block, own[n+1:])
			}
		}
	}
	return m.Course
}

type moduleCourse struct {
	*Course
	sites   []*ir.Site
	in      [][]int32 // places by block
	forever []bool    // blocks from whose start the function may run forever without reaching a place
	seen    []int32   // one more than the last place from which the block was entered
}

// pass follows the code after a place, in its block and in later ones.
func (m *moduleCourse) pass(place int, b *ir.Block, rest []int32) {
	work := m.leave(place, b, rest, nil)
	for len(work) > 0 {
		next := work[len(work)-1]
		work = m.leave(place, next, m.in[next.Index], work[:len(work)-1])
	}
}

// enter follows the code from the start of a block.
func (m *moduleCourse) enter(place int, b *ir.Block) {
	m.seen[b.Index] = int32(place) + 1
	m.stays[place] = m.stays[place] || m.forever[b.Index]
	m.pass(place, b, m.in[b.Index])
}

// leave records the next places in a block, up to the first that cannot be skipped. If there is none, it adds the successors of the block to work.
func (m *moduleCourse) leave(place int, b *ir.Block, rest []int32, work []*ir.Block) []*ir.Block {
	for _, next := range rest {
		m.follows[place] = append(m.follows[place], next)
		if !isGuard(m.sites[next-1]) {
			return work
		}
	}
	last := b.Instrs[len(b.Instrs)-1]
	switch {
	case last.Op == ir.OpRet:
		m.leaves[place] = true
	case len(last.Blocks) == 0:
		m.ends[place] = true
	}
	for _, next := range last.Blocks {
		if m.seen[next.Index] != int32(place)+1 {
			m.seen[next.Index] = int32(place) + 1
			m.stays[place] = m.stays[place] || m.forever[next.Index]
			work = append(work, next)
		}
	}
	return work
}

// findLoops finds the blocks from whose start the function may run forever without reaching a place. It repeatedly removes blocks with a place and blocks
// without a remaining successor; the others are the result.
func (m *moduleCourse) findLoops(blocks []*ir.Block) {
	m.forever = make([]bool, len(blocks))
	behind := make([]int, len(blocks))
	before := make([][]*ir.Block, len(blocks))
	var ending []*ir.Block
	for _, b := range blocks {
		m.forever[b.Index] = true
		for _, next := range b.Instrs[len(b.Instrs)-1].Blocks {
			before[next.Index] = append(before[next.Index], b)
			behind[b.Index]++
		}
		if behind[b.Index] == 0 || m.stops(b) {
			m.forever[b.Index] = false
			ending = append(ending, b)
		}
	}
	for len(ending) > 0 {
		b := ending[len(ending)-1]
		ending = ending[:len(ending)-1]
		for _, p := range before[b.Index] {
			if behind[p.Index]--; behind[p.Index] == 0 && m.forever[p.Index] {
				m.forever[p.Index] = false
				ending = append(ending, p)
			}
		}
	}
}

// stops reports whether every path through a block reaches a place in it.
func (m *moduleCourse) stops(b *ir.Block) bool {
	for _, place := range m.in[b.Index] {
		if !isGuard(m.sites[place-1]) {
			return true
		}
	}
	return false
}
