package truth_test

import "slices"

// shrunk removes parts of a program as long as the rest still fails: flags, functions, sites, operands and steps. It is deterministic, and in each of
// a few rounds it tries each part once.
func shrunk(p *program, fails func(*program) bool) *program {
	best := p
	try := func(q *program) bool {
		if q != nil && fails(q) {
			best = q
			return true
		}
		return false
	}
	for range 4 {
		before := best.size()
		if best.Threads > 1 {
			q := best.clone()
			q.Threads = 1
			try(q)
		}
		for n := len(best.Flags) - 1; n >= 0; n-- {
			q := best.clone()
			q.Flags = slices.Delete(q.Flags, n, n+1)
			try(q)
		}
		for n := len(best.Funcs) - 1; n >= 0; n-- {
			try(best.withoutFunction(n))
		}
		for n := len(best.Funcs) - 1; n >= 0; n-- {
			// Try halves of the steps, then quarters, and finally single steps.
			for size := len(best.Funcs[n].Steps); size > 0; size /= 2 {
				for at := len(best.Funcs[n].Steps) - size; at >= 0; at -= size {
					if at+size <= len(best.Funcs[n].Steps) {
						try(best.withoutSteps(n, at, size))
					}
				}
			}
			for k := range best.Funcs[n].Steps {
				if s := best.Funcs[n].Steps[k].Site; s != nil {
					for o := len(s.Live) - 1; o >= 0; o-- {
						try(best.withoutOperand(n, k, o))
					}
				}
			}
			for k := len(best.Funcs[n].Attributes) - 1; k >= 0; k-- {
				q := best.clone()
				q.Funcs[n].Attributes = slices.Delete(q.Funcs[n].Attributes, k, k+1)
				try(q)
			}
		}
		if best.size() == before {
			break
		}
	}
	return best
}

// size counts the parts that shrunk can remove.
func (p *program) size() int {
	n := len(p.Flags) + len(p.Funcs) + p.Threads
	for _, f := range p.Funcs {
		n += len(f.Steps) + len(f.Attributes)
		for _, s := range f.Steps {
			if s.Site != nil {
				n += len(s.Site.Live)
			}
		}
	}
	return n
}

// clone returns a copy from which parts can be removed. The copy shares the values, which never change.
func (p *program) clone() *program {
	q := *p
	q.Flags = slices.Clone(p.Flags)
	q.Funcs = make([]*function, len(p.Funcs))
	for n, f := range p.Funcs {
		g := *f
		g.Attributes = slices.Clone(f.Attributes)
		g.Steps = make([]*step, len(f.Steps))
		for k, s := range f.Steps {
			c := *s
			if s.Site != nil {
				x := *s.Site
				x.Live, x.Early, x.Level = slices.Clone(x.Live), slices.Clone(x.Early), slices.Clone(x.Level)
				if x.Exit != nil {
					exit := *x.Exit
					exit.Names = slices.Clone(exit.Names)
					x.Exit = &exit
				}
				c.Site = &x
			}
			g.Steps[k] = &c
		}
		q.Funcs[n] = &g
	}
	return &q
}

// withoutFunction returns the program without a function, or nil if another function calls it.
func (p *program) withoutFunction(n int) *program {
	name := p.Funcs[n].Number
	for k, f := range p.Funcs {
		for _, s := range f.Steps {
			if k != n && s.Calls == name+1 {
				return nil
			}
		}
	}
	q := p.clone()
	q.Funcs = slices.Delete(q.Funcs, n, n+1)
	if !slices.ContainsFunc(q.Funcs, func(f *function) bool { return f.root }) {
		return nil
	}
	return q
}

// withoutSteps returns the program without some steps of a function, or nil if other steps need them.
func (p *program) withoutSteps(n, at, size int) *program {
	q := p.clone()
	f := q.Funcs[n]
	gone := map[string]bool{}
	loops := 0
	for _, s := range f.Steps[at : at+size] {
		loops += s.Loop
		if loops < 0 {
			return nil
		}
		for _, v := range s.Gives {
			gone[v.Name] = true
		}
	}
	if loops != 0 {
		return nil
	}
	f.Steps = slices.Delete(f.Steps, at, at+size)
	needs := func(list []*value) bool {
		return slices.ContainsFunc(list, func(v *value) bool { return !v.Const && gone[v.Name] })
	}
	for _, s := range f.Steps {
		if needs(s.Uses) || s.Site != nil && (needs(s.Site.Live) || needs(s.Site.GC)) {
			return nil
		}
	}
	if needs([]*value{f.Result}) {
		return nil
	}
	return q
}

// withoutOperand returns the program without one operand of a site.
func (p *program) withoutOperand(n, k, operand int) *program {
	q := p.clone()
	s := q.Funcs[n].Steps[k]
	v := s.Site.Live[operand]
	if x := s.Site.Exit; x != nil {
		if x.Key && operand == 0 {
			return nil
		}
		x.Names = slices.Delete(x.Names, operand, operand+1)
	}
	if s.Site.Level != nil {
		s.Site.Level = slices.Delete(s.Site.Level, operand, operand+1)
	}
	s.Site.Live = slices.Delete(s.Site.Live, operand, operand+1)
	s.Site.Early = slices.Delete(s.Site.Early, operand, operand+1)
	if at := slices.Index(s.Uses, v); at >= 0 {
		s.Uses = slices.Delete(slices.Clone(s.Uses), at, at+1)
	}
	return q
}
