package regex

import "slices"

// MatchFlags holds the flags of regexec, with glibc's numbers.
type MatchFlags int

// REG_NOTBOL and REG_NOTEOL. REG_STARTEND (4) is what from and a shorter subject are.
const (
	NotBegin MatchFlags = 1
	NotEnd   MatchFlags = 2
)

// Span is the place of a match of one part, -1 and -1 where it did not match.
type Span struct{ From, To int }

// state is a set of nodes in which the automaton may be at one place, in rising order.
type state struct {
	nodes []int
	next  map[byte]*state // nil where nothing is left
	halts bool
	age   int
}

// maxKept bounds the states that are kept from match to match; past it they are made anew.
const maxKept = 1 << 18

// matcher is one search.
type matcher struct {
	*Program
	subject []byte // in upper case without regard to case
	flags   MatchFlags
	Budget
	log    []*state // by place from the start of the match; nil where it is not needed
	marked []bool   // scratch, by node
}

// Match finds the leftmost longest match in subject that begins at from or later, and where its parts matched: at most n spans,
// the whole one first. Which parts are asked for may change whether there is a match, as with glibc. spans is nil for no match.
func (p *Program) Match(subject []byte, from, n int, flags MatchFlags, budget Budget) (spans []Span, found bool, err error) {
	if p.flags&NoSub != 0 {
		n = 0
	}
	n = min(n, p.Groups+1)
	m := &matcher{Program: p, subject: subject, flags: flags, Budget: budget, marked: make([]bool, len(p.nodes))}
	if err := budget.Steps(len(subject) + len(p.nodes)); err != nil {
		return nil, false, err
	}
	if p.flags&IgnoreCase != 0 {
		m.subject = upper(subject)
		if err := budget.Bytes(len(subject)); err != nil {
			return nil, false, err
		}
	}
	anchored := p.anchored()
	if anchored && from != 0 && len(subject) != 0 {
		return nil, false, nil
	}
	for at := from; at <= len(subject); at++ {
		to, err := m.longest(at, n > 1)
		if err != nil {
			return nil, false, err
		}
		if to >= 0 {
			spans, end, err := m.parts(at, to, n)
			if end || err != nil {
				return spans, spans != nil, err
			}
		}
		if anchored {
			break
		}
	}
	return nil, false, nil
}

// anchored reports whether a match can only be at the start of the subject.
func (p *Program) anchored() bool {
	for _, k := range p.closure([]int{p.start}, nil) {
		at := p.nodes[k].at
		if at.takesPrev(0) || at.takesPrev(word) || p.flags&Newline != 0 && at.takesPrev(newline) {
			return false
		}
	}
	return true
}

// contextAt returns the context at a place; -1 is before the subject.
func (m *matcher) contextAt(at int) context {
	switch {
	case at < 0 && m.flags&NotBegin != 0:
		return begin
	case at < 0:
		return begin | newline
	case at == len(m.subject) && m.flags&NotEnd != 0:
		return end
	case at == len(m.subject):
		return end | newline
	case isWord(m.subject[at]):
		return word
	case m.subject[at] == '\n' && m.Program.flags&Newline != 0:
		return newline
	}
	return 0
}

// closure returns the nodes that can be reached from some nodes without a byte, themselves included, in no order.
func (p *Program) closure(from []int, marked []bool) []int {
	if marked == nil {
		marked = make([]bool, len(p.nodes))
	}
	var all []int
	for _, k := range from {
		if !marked[k] {
			marked[k] = true
			all = append(all, k)
		}
	}
	for i := 0; i < len(all); i++ {
		for _, k := range p.nodes[all[i]].empty {
			if !marked[k] {
				marked[k] = true
				all = append(all, k)
			}
		}
	}
	for _, k := range all {
		marked[k] = false
	}
	return all
}

// stateOf returns the state after a byte with context x, nil for none.
func (m *matcher) stateOf(from []int, x context) (*state, error) {
	if len(from) == 0 {
		return nil, nil
	}
	all := m.closure(from, m.marked)
	if err := m.Steps(64 * len(all)); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(k int) bool { return !m.nodes[k].at.takesPrev(x) })
	slices.Sort(all)
	key := make([]byte, 0, 3*len(all))
	for _, k := range all {
		key = append(key, byte(k), byte(k>>8), byte(k>>16))
	}
	if s := m.states[string(key)]; s != nil {
		return s, nil
	}
	if m.kept += len(all) + 32; m.kept > maxKept {
		m.kept = 0
		m.age++
		clear(m.states)
	}
	s := &state{nodes: all, next: map[byte]*state{}, age: m.age}
	for _, k := range all {
		s.halts = s.halts || m.nodes[k].op == opEnd
	}
	m.states[string(key)] = s
	return s, m.Bytes(8 * len(all)) // which the log may hold for longer
}

// takes reports whether a node takes a byte; it does not check the constraint on the byte after it.
func (n *node) takes(c byte) bool { return n.op == opByte && n.c == c || n.op == opSet && n.set.has(c) }

// step advances by a byte. A place's constraint on the following byte is checked against that byte alone, so that for $ and ^ a newline in the middle
// of a match ends a line even where the flag for newlines is not set, as in glibc.
func (m *matcher) step(s *state, c byte) (*state, error) {
	if s.age != m.age { // was dropped: what it leads to would hold all the others
		s = &state{nodes: s.nodes, next: map[byte]*state{}, halts: s.halts, age: m.age}
	}
	if t, ok := s.next[c]; ok {
		return t, m.Steps(1)
	}
	x := context(0)
	switch {
	case isWord(c):
		x = word
	case c == '\n':
		x = newline
	}
	var to []int
	for _, k := range s.nodes {
		if n := &m.nodes[k]; n.takes(c) && n.at.takesNext(x) {
			to = append(to, n.next)
		}
	}
	if err := m.Steps(len(s.nodes)); err != nil {
		return nil, err
	}
	t, err := m.stateOf(to, x)
	if err != nil {
		return nil, err
	}
	s.next[c] = t
	m.kept++
	return t, nil
}

// lastNode is the node that ends a match here, -1 for none.
func (m *matcher) lastNode(s *state, at int) int {
	if s.halts {
		x := m.contextAt(at)
		for _, k := range s.nodes {
			if n := &m.nodes[k]; n.op == opEnd && n.at.takesNext(x) {
				return k
			}
		}
	}
	return -1
}

// longest returns the end of the longest match that starts at a place, -1 for none.
func (m *matcher) longest(from int, log bool) (int, error) {
	s, err := m.stateOf([]int{m.start}, m.contextAt(from-1))
	m.log = m.log[:0]
	last := -1
	for at := from; err == nil && s != nil; at++ {
		if log {
			if err := m.Bytes(8); err != nil {
				return 0, err
			}
			m.log = append(m.log, s)
		}
		if m.lastNode(s, at) >= 0 {
			last = at
		}
		if at == len(m.subject) {
			break
		}
		s, err = m.step(s, m.subject[at])
	}
	return last, err
}
