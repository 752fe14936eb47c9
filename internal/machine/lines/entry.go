package lines

// entry holds those parts of a debugging information entry that this package uses.
type entry struct {
	off      uint64 // in .debug_info
	tag      uint32 // 0 for the end of a list of children
	children bool

	sibling, name, linkage, origin, specification value
	low, high, ranges                             value
	callFile, callLine, callColumn                value
	// These occur in the first entry of a unit.
	stmtList, compDir, strOffsetsBase, addrBase, rnglistsBase, dwoName value
}

// entry reads the entry at the cursor.
func (u *unit) entry(b *buf) (e entry, err error) {
	e.off = b.base + uint64(b.pos)
	a, err := u.abbrev(b)
	if a == nil || err != nil {
		return e, err
	}
	e.tag, e.children = a.tag, a.children
	for _, at := range a.attrs {
		into := e.place(at.name)
		if into == nil {
			b.skipValue(at.form, u.sizes)
			continue
		}
		*into = b.value(at, u.sizes)
	}
	return e, u.fault(b, e.off)
}

// abbrev reads the code of an entry, and returns nil for the end of a list of children.
func (u *unit) abbrev(b *buf) (*abbrev, error) {
	off := b.base + uint64(b.pos)
	code := b.uleb()
	if b.err != nil || code == 0 {
		return nil, u.fault(b, off)
	}
	return u.table.find(code)
}

// fault turns the error of a cursor into an error of .debug_info.
func (u *unit) fault(b *buf, off uint64) error {
	if b.err == nil {
		return nil
	}
	info, err := u.r.section(".debug_info")
	if err != nil {
		return err
	}
	return info.fail(off, "%w", b.err)
}

// place returns the field of e for an attribute, or nil.
func (e *entry) place(attr uint32) *value {
	switch attr {
	case attrSibling:
		return &e.sibling
	case attrName:
		return &e.name
	case attrLinkageName, attrMIPSLinkage:
		return &e.linkage
	case attrOrigin:
		return &e.origin
	case attrSpecification:
		return &e.specification
	case attrLowpc:
		return &e.low
	case attrHighpc:
		return &e.high
	case attrRanges:
		return &e.ranges
	case attrCallFile:
		return &e.callFile
	case attrCallLine:
		return &e.callLine
	case attrCallColumn:
		return &e.callColumn
	case attrStmtList:
		return &e.stmtList
	case attrCompDir:
		return &e.compDir
	case attrStrOffsetsBase:
		return &e.strOffsetsBase
	case attrAddrBase:
		return &e.addrBase
	case attrRnglistsBase:
		return &e.rnglistsBase
	case attrDwoName, attrGNUDwoName:
		return &e.dwoName
	}
	return nil
}

// entryAt reads the entry of this unit at an offset of .debug_info.
func (u *unit) entryAt(off uint64) (entry, error) {
	if u.data != nil {
		b := u.cursor(off)
		return u.entry(&b)
	}
	info, err := u.r.section(".debug_info")
	if err != nil {
		return entry{}, err
	}
	for window := uint64(256); ; window *= 8 {
		data, err := info.bytes(off, min(window, u.end-off))
		if err != nil {
			return entry{}, err
		}
		b := buf{data: data, base: off, order: u.r.order}
		e, err := u.entry(&b)
		if b.err != errTruncated || window >= u.end-off {
			return e, err
		}
	}
}

// load reads the whole unit into memory.
func (u *unit) load() error {
	if u.data != nil {
		return nil
	}
	info, err := u.r.section(".debug_info")
	if err != nil {
		return err
	}
	if !u.r.budget.hold(int64(u.end - u.off)) {
		return info.costly()
	}
	u.data, err = info.bytes(u.off, u.end-u.off)
	return err
}

// cursor returns a buf at an offset of .debug_info; the unit must be loaded.
func (u *unit) cursor(off uint64) buf {
	return buf{data: u.data, base: u.off, pos: int(off - u.off), order: u.r.order}
}

// skipChildren skips the children of an entry.
func (u *unit) skipChildren(b *buf, e *entry) error {
	if !e.children {
		return nil
	}
	if to, ok := u.reference(e.sibling); ok && to > b.base+uint64(b.pos) && to <= u.end {
		b.pos = int(to - b.base)
		return nil
	}
	for depth := 1; depth > 0; {
		off := b.base + uint64(b.pos)
		a, err := u.abbrev(b)
		if err != nil {
			return err
		}
		if a == nil {
			depth--
			continue
		}
		if a.fixed >= 0 {
			b.skip(uint64(a.fixed))
		} else {
			for _, at := range a.attrs {
				b.skipValue(at.form, u.sizes)
			}
		}
		if b.err != nil {
			return u.fault(b, off)
		}
		if a.children {
			depth++
		}
	}
	return nil
}

// reference returns the offset in .debug_info that a reference attribute holds.
func (u *unit) reference(v value) (uint64, bool) {
	switch v.form {
	case formRef1, formRef2, formRef4, formRef8, formRefUdata:
		return u.off + v.u, true
	case formRefAddr:
		return v.u, true
	}
	return 0, false
}

// maxOrigins limits the entries that nameOf follows: a concrete function, its abstract instance, and the declaration of that.
const maxOrigins = 8

// nameOf returns the symbol name of a function, or its name in the source, or "".
func (u *unit) nameOf(e entry) (string, error) {
	name, of := e.name, u
	for range maxOrigins {
		if e.linkage.present() {
			return u.text(e.linkage)
		}
		if !name.present() {
			name, of = e.name, u
		}
		next := e.origin
		if !next.present() {
			next = e.specification
		}
		off, ok := u.reference(next)
		if !ok {
			break
		}
		if off < u.body || off >= u.end {
			other, err := u.r.unitWith(off)
			if err != nil {
				return "", err
			}
			if other == nil {
				break
			}
			if err := other.readRoot(); err != nil {
				return "", err
			}
			u = other
		}
		var err error
		if e, err = u.entryAt(off); err != nil {
			return "", err
		}
	}
	return of.text(name)
}
