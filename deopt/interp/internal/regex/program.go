package regex

import "slices"

// node is a state of the automaton. The two ways on from a branch are in the order in which they are tried.
type node struct {
	op       op
	c        byte
	optional bool
	copied   bool // for a repetition, or for an anchor
	set      *set
	at       constraint // what the place of the node must have beside it
	group    int
	next     int // after a byte
	empty    []int
	from     []int // the nodes that have this one in empty
	original int   // of a copy
}

// Program is a compiled expression.
type Program struct {
	// Groups is the number of parenthesized parts, re_nsub.
	Groups int
	flags  Flags
	nodes  []node
	start  int
	plural bool  // there is more than one way through it
	same   []int // by group, the one that always matches the same
	states map[string]*state
	kept   int // nodes in states, and ways out of them
	age    int // how often they were dropped
}

// Budget is asked before steps are made and memory is taken, and returns an error for too much of either. A match needs its memory only until it
// ends.
type Budget struct {
	Steps, Bytes func(n int) error
}

// Compile reads an expression. The error is an [Error] where glibc has one, or *[Unsupported]; groups is their number as
// far as the expression was read.
func Compile(pattern []byte, flags Flags, budget Budget) (p *Program, groups int, err error) {
	parse := &parser{lexer: newLexer(pattern, flags)}
	t, err := parse.parse()
	if err == nil && parse.backRef {
		err = unsupported("a regular expression with a back reference")
	}
	if err != nil {
		return nil, parse.groups, err
	}
	p = &Program{Groups: parse.groups, flags: flags, same: make([]int, parse.groups), states: map[string]*state{}}
	for k := range p.same {
		p.same[k] = k
	}
	p.nested(t)
	t = open(t, flags&NoSub != 0)
	p.number(t)
	link(t)
	p.connect(t)
	p.start = t.first.node
	if err := p.inherit(budget); err != nil {
		return nil, parse.groups, err
	}
	for k, n := range p.nodes {
		for _, to := range n.empty {
			p.nodes[to].from = append(p.nodes[to].from, k)
		}
	}
	return p, parse.groups, nil
}

// Size returns the memory that the program takes, roughly, in bytes. A match may change it.
func (p *Program) Size() uint64 { return 200*uint64(len(p.nodes)) + 64*uint64(p.kept) }

// NoSub reports whether the program was compiled to report no places of matches.
func (p *Program) NoSub() bool { return p.flags&NoSub != 0 }

// nested drops groups that hold nothing but another one: both match the same.
func (p *Program) nested(t *tree) {
	if t == nil {
		return
	}
	if t.op == opGroup && t.left != nil && t.left.op == opGroup {
		// One at a time, as glibc does: of three in each other the innermost stays as it is.
		inner := t.left
		t.left = inner.left
		p.same[inner.group] = p.same[t.group]
	}
	p.nested(t.left)
	p.nested(t.right)
}

// open replaces each group by its start, its content and its end, or by its content alone, if it has one, where the caller asks for no groups.
func open(t *tree, noSub bool) *tree {
	if t == nil {
		return nil
	}
	t.left, t.right = open(t.left, noSub), open(t.right, noSub)
	switch {
	case t.op != opGroup:
		return t
	case noSub && t.left != nil:
		return t.left
	}
	start := &tree{op: opOpen, group: t.group, optional: t.optional}
	rest := &tree{op: opClose, group: t.group, optional: t.optional}
	if t.left != nil {
		rest = &tree{op: opConcat, left: t.left, right: rest}
	}
	return &tree{op: opConcat, left: start, right: rest}
}

// number makes the nodes: inner trees come before outer ones, and left ones before right ones.
func (p *Program) number(t *tree) {
	if t == nil {
		return
	}
	p.number(t.left)
	p.number(t.right)
	if t.op == opConcat {
		t.first = t.left.first
		return
	}
	t.first, t.node = t, len(p.nodes)
	p.nodes = append(p.nodes, node{op: t.op, c: t.c, set: t.set, at: t.at, group: t.group, optional: t.optional, copied: t.copied, next: -1})
}

// link finds what comes after each part.
func link(t *tree) {
	if t == nil {
		return
	}
	switch t.op {
	case opStar:
		t.left.next = t
	case opConcat:
		t.left.next, t.right.next = t.right.first, t.next
	default:
		for _, part := range []*tree{t.left, t.right} {
			if part != nil {
				part.next = t.next
			}
		}
	}
	link(t.left)
	link(t.right)
}

// connect makes the ways from node to node.
func (p *Program) connect(t *tree) {
	if t == nil {
		return
	}
	p.connect(t.left)
	p.connect(t.right)
	switch n := t.node; t.op {
	case opConcat, opEnd:
	case opAlt, opStar:
		p.plural = true
		ways := []int{t.next.node, t.next.node}
		for k, part := range []*tree{t.left, t.right} {
			if part != nil {
				ways[k] = part.first.node
			}
		}
		slices.Sort(ways)
		p.nodes[n].empty = slices.Compact(ways)
	case opByte, opSet:
		p.nodes[n].next = t.next.node
	default:
		p.nodes[n].empty = []int{t.next.node}
	}
}
