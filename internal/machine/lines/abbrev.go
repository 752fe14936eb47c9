package lines

import "fmt"

// abbrev is an abbreviation declaration: it describes the entries with one code (DWARF 5, 7.5.3).
type abbrev struct {
	tag      uint32
	children bool
	attrs    []attr
	fixed    int // total size of the attributes in bytes, or -1 if it depends on the entry
}

// attr is one attribute of an abbreviation.
type attr struct {
	name, form uint32
	implicit   int64 // the value of DW_FORM_implicit_const
}

// abbrevTable is one table of .debug_abbrev. It reads rows only up to the requested code, because most units need only their first entry.
type abbrevTable struct {
	section *section
	off     uint64 // offset of the first unread byte
	window  buf
	done    bool
	dense   []*abbrev // abbreviations with the codes 1, 2, 3, …
	others  map[uint64]*abbrev
	sizes   formSizes
}

// maxAbbrevs limits the rows of a table, and maxAttrs the attributes of a row. Real programs have some hundred rows of at most some twenty attributes.
const (
	maxAbbrevs = 1 << 16
	maxAttrs   = 1 << 10
)

func (r *Reader) abbrevTable(off uint64, sizes formSizes) (*abbrevTable, error) {
	if t := r.abbrevs[off]; t != nil && t.sizes == sizes {
		return t, nil
	}
	s, err := r.section(".debug_abbrev")
	if err != nil {
		return nil, err
	}
	if off >= s.size {
		return nil, s.fail(off, "a table after its end")
	}
	t := &abbrevTable{section: s, off: off, sizes: sizes, others: map[uint64]*abbrev{}}
	r.abbrevs[off] = t
	return t, nil
}

// find returns the abbreviation with a code.
func (t *abbrevTable) find(code uint64) (*abbrev, error) {
	for {
		if code-1 < uint64(len(t.dense)) {
			return t.dense[code-1], nil
		}
		if a := t.others[code]; a != nil {
			return a, nil
		}
		if t.done {
			return nil, t.section.fail(t.off, "no abbreviation %d", code)
		}
		if err := t.next(); err != nil {
			t.done = true
			return nil, err
		}
	}
}

// maxRow is the greatest length of a row in bytes.
const maxRow = 256 << 10

// next reads one more row.
func (t *abbrevTable) next() error {
	start := t.window.pos
	code, a := t.row()
	for size := uint64(512); t.window.err != nil; size *= 8 {
		if size > maxRow || t.window.err != errTruncated {
			return t.section.fail(t.off, "%w", t.window.err)
		}
		data, err := t.section.upTo(t.off, size)
		if err != nil {
			return err
		}
		t.window, start = buf{data: data, order: t.section.reader.order}, 0
		code, a = t.row()
	}
	t.off += uint64(t.window.pos - start)
	switch {
	case code == 0:
		t.done = true
	case len(t.dense)+len(t.others) == maxAbbrevs:
		return t.section.fail(t.off, "a table of more than %d rows", maxAbbrevs)
	case code == uint64(len(t.dense))+1:
		t.dense = append(t.dense, a)
	case t.others[code] == nil:
		t.others[code] = a
	}
	return nil
}

// row decodes the row at the start of the window.
func (t *abbrevTable) row() (code uint64, a *abbrev) {
	b := &t.window
	if code = b.uleb(); code == 0 {
		return 0, nil
	}
	a = &abbrev{tag: uint32(b.uleb()), children: b.uint(1) != 0}
	for b.err == nil {
		at := attr{name: uint32(b.uleb()), form: uint32(b.uleb())}
		if at.form == formImplicitConst {
			at.implicit = b.sleb()
		}
		if at.name == 0 && at.form == 0 {
			break
		}
		if len(a.attrs) == maxAttrs {
			b.fail(fmt.Errorf("an abbreviation of more than %d attributes", maxAttrs))
		}
		if !t.section.reader.budget.hold(16) {
			b.fail(ErrCostly)
		}
		a.attrs = append(a.attrs, at)
		if n := t.sizes.of(at.form); n < 0 || a.fixed < 0 {
			a.fixed = -1
		} else {
			a.fixed += n
		}
	}
	return code, a
}
