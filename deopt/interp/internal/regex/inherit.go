package regex

// What an anchor asks of its place holds for all that is reached from it without a byte. So those nodes are there once
// more for it, with its constraint and numbers of their own, up to those that take a byte.

// inherit makes the copies, in the order in which anchors are come upon.
func (p *Program) inherit(budget Budget) error {
	seen := make([]bool, 0, len(p.nodes))
	for k := 0; k < len(p.nodes); k++ {
		stack := []int{k}
		for len(stack) > 0 {
			n := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for len(seen) < len(p.nodes) {
				seen = append(seen, false)
			}
			if seen[n] {
				continue
			}
			seen[n] = true
			if x := p.nodes[n]; x.at != 0 && len(x.empty) > 0 && !p.nodes[x.empty[0]].copied {
				if err := p.copies(n, n, n, x.at, budget); err != nil {
					return err
				}
			}
			if len(p.nodes) > MaxNodes {
				return unsupported("a regular expression that needs more than %d nodes", MaxNodes)
			}
			ways := p.nodes[n].empty
			for i := len(ways) - 1; i >= 0; i-- {
				stack = append(stack, ways[i])
			}
		}
	}
	return nil
}

// copies makes the ways of to, which is a copy of from or the anchor itself, lead to copies with a constraint.
func (p *Program) copies(from, to, root int, at constraint, budget Budget) error {
	for {
		if len(p.nodes) > MaxNodes {
			return unsupported("a regular expression that needs more than %d nodes", MaxNodes)
		}
		ways := p.nodes[from].empty
		switch len(ways) {
		case 0:
			p.nodes[to].next = p.nodes[from].next
			return nil
		case 1:
			if from == root && to != from { // a loop
				p.nodes[to].empty = []int{ways[0]}
				return nil
			}
			at |= p.nodes[from].at
			way := ways[0]
			c := p.copyOf(way, at)
			p.nodes[to].empty = []int{c}
			from, to = way, c
		default:
			if err := budget.Steps(len(p.nodes)); err != nil {
				return err
			}
			first := p.find(ways[0], at)
			if first < 0 {
				first = p.copyOf(ways[0], at)
				p.nodes[to].empty = []int{first}
				if err := p.copies(ways[0], first, root, at, budget); err != nil {
					return err
				}
			}
			second := p.copyOf(ways[1], at)
			p.nodes[to].empty = []int{min(first, second), max(first, second)}
			from, to = ways[1], second
		}
	}
}

func (p *Program) copyOf(n int, at constraint) int {
	c := p.nodes[n]
	c.at |= at
	c.copied, c.original, c.empty, c.next = true, n, nil, -1
	p.nodes = append(p.nodes, c)
	return len(p.nodes) - 1
}

// find looks for a copy that is there.
func (p *Program) find(original int, at constraint) int {
	for k := len(p.nodes) - 1; k > 0 && p.nodes[k].copied; k-- {
		if p.nodes[k].original == original && p.nodes[k].at == at {
			return k
		}
	}
	return -1
}
