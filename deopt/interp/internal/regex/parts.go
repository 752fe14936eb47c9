package regex

import "slices"

// parts finds where groups matched, for a match from from to to. It may find that there was no match after all: see step. Then it returns no spans,
// and end reports whether the search ends there.
func (m *matcher) parts(from, to, n int) (spans []Span, end bool, err error) {
	spans = make([]Span, max(n, 1))
	for k := range spans {
		spans[k] = Span{-1, -1}
	}
	spans[0] = Span{from, to}
	if n <= 1 {
		return spans[:n], true, nil
	}
	last := m.lastNode(m.log[to-from], to)
	live, err := m.live(from, to, last)
	if err != nil || live == nil {
		return nil, false, err
	}
	if found, err := m.walk(spans, live, last); !found || err != nil {
		return nil, true, err
	}
	for k, same := range m.same[:n-1] {
		spans[k+1] = spans[same+1]
	}
	return spans, true, nil
}

// live are the nodes, by place, from which the end of the match can be reached; nil where it cannot. Where there is
// one way only all are.
func (m *matcher) live(from, to, last int) ([][]int, error) {
	live := make([][]int, to-from+1)
	if !m.plural {
		for k := range live {
			live[k] = m.log[k].nodes
		}
		return live, nil
	}
	dest := []int{last}
	for at := to; ; at-- {
		var err error
		if live[at-from], err = m.reaching(dest, m.log[at-from].nodes); err != nil || at == from {
			return live, err
		}
		dest = dest[:0]
		s := m.log[at-1-from]
		if err := m.Steps(4 * (len(s.nodes) + len(live[at-from]))); err != nil {
			return nil, err
		}
		if err := m.Bytes(24 + 8*len(live[at-from])); err != nil {
			return nil, err
		}
		for _, k := range s.nodes {
			if m.accepts(k, at-1) && contains(live[at-from], m.nodes[k].next) {
				dest = append(dest, k)
			}
		}
		if len(dest) == 0 {
			return nil, nil
		}
	}
}

func contains(set []int, k int) bool {
	_, found := slices.BinarySearch(set, k)
	return found
}

// accepts reports whether a node takes the byte at a place, and its constraint on the next byte holds.
func (m *matcher) accepts(k, at int) bool {
	n := &m.nodes[k]
	return at < len(m.subject) && n.takes(m.subject[at]) && n.at.takesNext(m.contextAt(at))
}

// reaching are those of some nodes from which one of dest is reached without a byte, and dest. The way may be through nodes
// that cannot be here.
func (m *matcher) reaching(dest, nodes []int) ([]int, error) {
	all := slices.Clone(dest)
	for _, k := range all {
		m.marked[k] = true
	}
	for i := 0; i < len(all); i++ {
		for _, k := range m.nodes[all[i]].from {
			if !m.marked[k] {
				m.marked[k] = true
				all = append(all, k)
			}
		}
	}
	var live []int
	for k, n := range all {
		m.marked[n] = false
		if k < len(dest) || contains(nodes, n) {
			live = append(live, n)
		}
	}
	slices.Sort(live)
	return live, m.Steps(4 * len(all))
}

// walk goes through the automaton along live nodes, and notes where groups begin and end.
func (m *matcher) walk(spans []Span, live [][]int, last int) (bool, error) {
	from, to := spans[0].From, spans[0].To
	kept := slices.Clone(spans)
	via := map[int]bool{} // without a byte
	steps := 0
	for at, k := from, m.start; at <= to; {
		if steps++; steps > 4*len(m.nodes)*(to-from+2) {
			return false, unsupported("a match in which glibc goes round in a circle")
		}
		if err := m.Steps(16); err != nil {
			return false, err
		}
		m.nodes[k].note(spans, kept, at)
		if at == to && k == last {
			return true, nil
		}
		if n := &m.nodes[k]; n.op != opByte && n.op != opSet {
			via[k] = true
			if k = m.way(n, live[at-from], via); k < 0 {
				return false, nil
			}
			continue
		}
		if !m.accepts(k, at) {
			return false, nil
		}
		k = m.nodes[k].next
		at++
		clear(via)
	}
	return true, nil
}

// way is the first live way on, and the second one where the first was gone before without a byte; -1 for none.
func (m *matcher) way(n *node, live []int, via map[int]bool) int {
	first := -1
	for _, k := range n.empty {
		switch {
		case !contains(live, k):
		case first < 0:
			first = k
		case via[first]:
			return k
		}
	}
	return first
}

// note puts down that a group begins or ends here. Where a group that may be left out matched nothing, and something
// before, what it and those inside of it matched then stays.
func (n *node) note(spans, kept []Span, at int) {
	g := n.group + 1
	switch {
	case n.op != opOpen && n.op != opClose || g >= len(spans):
	case n.op == opOpen:
		spans[g] = Span{at, -1}
	case spans[g].From < at:
		spans[g].To = at
		copy(kept, spans)
	case n.optional && kept[g].From != -1:
		copy(spans, kept)
	default:
		spans[g].To = at
	}
}
