package lines

import (
	"fmt"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
)

// function is the offset of a function's entry, and its code.
type function struct {
	machine.Range
	off uint64
}

// at returns the source information that the unit has about an address.
func (u *unit) at(pc uint64) (p Place, err error) {
	if err := u.readRoot(); err != nil {
		return p, err
	}
	table, err := u.lineTable()
	if err != nil {
		return p, err
	}
	var inner frame.Source
	if table != nil {
		inner = table.find(pc)
	}
	var chain []entry // outermost first
	if u.root.children {
		if chain, err = u.chain(pc); err != nil {
			return p, err
		}
	}
	if u.root.dwoName.present() && len(chain) == 0 {
		name, err := u.text(u.root.dwoName)
		if err != nil {
			return p, err
		}
		p.Missing = fmt.Sprintf("the function and its inlined calls are in %s (split DWARF), which is not supported", name)
	}
	if len(chain) == 0 {
		if inner.File != "" {
			p.Lines = []frame.Source{inner}
		}
		return p, nil
	}
	for k := len(chain) - 1; k >= 0; k-- {
		e := &chain[k]
		if inner.Function, err = u.nameOf(*e); err != nil {
			return p, err
		}
		inner.Inlined = k > 0
		p.Lines = append(p.Lines, inner)
		inner = frame.Source{Line: line(e.callLine), Column: line(e.callColumn)}
		if table != nil && e.callFile.present() {
			inner.File = table.file(e.callFile.u)
		}
	}
	return p, nil
}

// line returns the number of a line or a column, or 0 if it is too large.
func line(v value) int {
	if v.u > 1<<31-1 {
		return 0
	}
	return int(v.u)
}

// chain returns the entries that contain an address: that of its function, then those of the inlined functions, the innermost last.
func (u *unit) chain(pc uint64) ([]entry, error) {
	if err := u.load(); err != nil {
		return nil, err
	}
	f, err := u.function(pc)
	if f == nil || err != nil {
		return nil, err
	}
	b := u.cursor(f.off)
	e, err := u.entry(&b)
	if err != nil || !e.children {
		return []entry{e}, err
	}
	chain := []entry{e}
	// Descend into the entries that contain the address, and skip everything after them.
	for depth, last := 1, 0; depth > last; {
		e, err := u.entry(&b)
		if err != nil {
			return nil, err
		}
		if e.tag == 0 {
			depth--
			continue
		}
		inside := false
		switch e.tag {
		case tagInlined, tagLexicalBlock, tagTryBlock, tagCatchBlock, tagWithStmt:
			spans, err := u.spans(&e)
			if err != nil {
				return nil, err
			}
			inside = within(spans, pc)
			if inside && e.tag == tagInlined {
				chain = append(chain, e)
			}
			if inside && !e.children {
				return chain, nil
			}
			if inside {
				last = depth
			}
			// Descend into a block without addresses: the entries in it may have addresses.
			if !e.low.present() && !e.ranges.present() && e.tag != tagInlined {
				inside = true
			}
		}
		switch {
		case !e.children:
		case inside:
			depth++
		default:
			if err := u.skipChildren(&b, &e); err != nil {
				return nil, err
			}
		}
	}
	return chain, nil
}

// function returns the function that contains an address, or nil. It first searches the functions that are not nested in other functions, because
// nearly all functions are not nested.
func (u *unit) function(pc uint64) (*function, error) {
	for {
		if !u.indexed {
			if err := u.index(); err != nil {
				return nil, err
			}
		}
		for i := range u.functions {
			if f := &u.functions[i]; f.Contains(machine.Addr(pc)) {
				return f, nil
			}
		}
		if u.nested {
			return nil, nil
		}
		u.nested, u.indexed = true, false
	}
}

// costly drops the index of functions, which is incomplete, and returns the error for an exhausted budget.
func (u *unit) costly() error {
	u.indexed = false
	return (&section{name: ".debug_info", reader: u.r}).costly()
}

// index lists the functions of the unit that have code.
func (u *unit) index() error {
	u.functions, u.indexed = nil, true
	b := u.cursor(u.body)
	if _, err := u.entry(&b); err != nil {
		return err
	}
	if !u.r.budget.take(int64(len(u.data))) {
		return u.costly()
	}
	for depth := 1; depth > 0 && b.more(); {
		at := b.pos
		a, err := u.abbrev(&b)
		if err != nil {
			return err
		}
		if a == nil {
			depth--
			continue
		}
		if a.tag != tagSubprogram {
			if a.fixed >= 0 {
				b.skip(uint64(a.fixed))
			} else {
				for _, at := range a.attrs {
					b.skipValue(at.form, u.sizes)
				}
			}
			if b.err != nil {
				return u.fault(&b, u.off+uint64(at))
			}
			if a.children {
				depth++
			}
			continue
		}
		b.pos = at
		e, err := u.entry(&b)
		if err != nil {
			return err
		}
		spans, err := u.spans(&e)
		if err != nil {
			return err
		}
		for _, s := range spans {
			u.functions = append(u.functions, function{s, e.off})
			if !u.r.budget.hold(24) {
				return u.costly()
			}
		}
		switch {
		case !e.children:
		case u.nested:
			depth++
		default:
			if err := u.skipChildren(&b, &e); err != nil {
				return err
			}
		}
	}
	return nil
}
