package sites

import "example.com/reframe/internal/llvm/ir"

// CourseOfModule returns the orders in which a function reaches its sites; place k+1 is sites[k]. They are in program order, and none of them is in
// an unreachable block. A guard is a site that the function may skip.
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
		m.ends[place] = LeavesFunction(s) // what follows a deoptimize call never runs, and need not have code
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
	in      [][]int32 // the places in each block
	forever []bool    // from the start of that block the function may run on for ever without coming to a place
	seen    []int32   // by which place a block was entered last, and one more
}

// pass continues after a place: to the remaining places in its block, and out of it.
func (m *moduleCourse) pass(place int, b *ir.Block, rest []int32) {
	work := m.leave(place, b, rest, nil)
	for len(work) > 0 {
		next := work[len(work)-1]
		work = m.leave(place, next, m.in[next.Index], work[:len(work)-1])
	}
}

// enter continues at the start of a block.
func (m *moduleCourse) enter(place int, b *ir.Block) {
	m.seen[b.Index] = int32(place) + 1
	m.stays[place] = m.stays[place] || m.forever[b.Index]
	m.pass(place, b, m.in[b.Index])
}

// leave records the remaining places in a block up to the first that cannot be skipped, and adds the successors of the block if there is none.
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

// findLoops finds the blocks from whose start the function may run forever without reaching a place: those that remain after removing, repeatedly,
// the blocks with a place and the blocks without a remaining successor.
func (m *moduleCourse) findLoops(blocks []*ir.Block) {
	m.forever = make([]bool, len(blocks))
	behind := make([]int, len(blocks))
	before := make([][]*ir.Block, len(blocks))
	var gone []*ir.Block
	for _, b := range blocks {
		m.forever[b.Index] = true
		for _, next := range b.Instrs[len(b.Instrs)-1].Blocks {
			before[next.Index] = append(before[next.Index], b)
			behind[b.Index]++
		}
		if behind[b.Index] == 0 || m.stops(b) {
			m.forever[b.Index] = false
			gone = append(gone, b)
		}
	}
	for len(gone) > 0 {
		b := gone[len(gone)-1]
		gone = gone[:len(gone)-1]
		for _, p := range before[b.Index] {
			if behind[p.Index]--; behind[p.Index] == 0 && m.forever[p.Index] {
				m.forever[p.Index] = false
				gone = append(gone, p)
			}
		}
	}
}

// stops reports whether no way through a block passes by all places in it.
func (m *moduleCourse) stops(b *ir.Block) bool {
	for _, place := range m.in[b.Index] {
		if !isGuard(m.sites[place-1]) {
			return true
		}
	}
	return false
}
