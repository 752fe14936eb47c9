package lines

import (
	"example.com/reframe/internal/machine"
	"fmt"
)

// unit is one unit of .debug_info (DWARF 5, 7.5.1).
type unit struct {
	r        *Reader
	off, end uint64 // offsets of its header and past its last entry
	body     uint64 // offset of its first entry
	version  int
	sizes    formSizes
	table    *abbrevTable

	root    entry // its first entry; zero until it is read
	rooted  bool
	rootErr error
	ranges  []machine.Range // the code that the unit describes
	ranged  bool

	data      []byte // the whole unit; nil until a function is looked up
	functions []function
	indexed   bool
	nested    bool // functions includes nested functions
}

// maxUnits limits the units that are listed. The largest programs have some ten thousand.
const maxUnits = 1 << 18

// These types of units do not describe code (DWARF 5, 7.5.1).
const (
	unitType      = 0x02
	unitSkeleton  = 0x04
	unitSplit     = 0x05
	unitSplitType = 0x06
)

// unitAt reads the header of the unit that starts at an offset.
func (r *Reader) unitAt(off uint64) (*unit, error) {
	if u := r.heads[off]; u != nil {
		return u, nil
	}
	info, err := r.section(".debug_info")
	if err != nil {
		return nil, err
	}
	const longest = 12 + 2 + 1 + 1 + 8 + 8
	data, err := info.upTo(off, longest)
	if err != nil {
		return nil, err
	}
	b := buf{data: data, base: off, order: r.order}
	u := &unit{r: r, off: off}
	n, wide := b.length()
	if start := off + uint64(b.pos); b.err == nil && n > info.size-start {
		return nil, info.fail(off, "a unit of %d bytes, of which %d are in the section", n, info.size-start)
	}
	u.end = off + uint64(b.pos) + n
	u.sizes.offset = 4
	if wide {
		u.sizes.offset = 8
	}
	u.version = int(b.uint(2))
	if b.err == nil && (u.version < 2 || u.version > 5) {
		return nil, info.fail(off, "a unit of DWARF %d, which is not supported", u.version)
	}
	kind, table := uint64(0), uint64(0)
	if u.version >= 5 {
		kind = b.uint(1)
		u.sizes.addr = int(b.uint(1))
		table = b.uint(u.sizes.offset)
		switch kind {
		case unitSkeleton, unitSplit:
			b.uint(8)
		case unitType, unitSplitType:
			b.uint(8)
			b.uint(u.sizes.offset)
		}
	} else {
		table = b.uint(u.sizes.offset)
		u.sizes.addr = int(b.uint(1))
	}
	if b.err != nil {
		return nil, info.fail(off, "%w", b.err)
	}
	if u.sizes.addr != 4 && u.sizes.addr != 8 {
		return nil, info.fail(off, "a unit with addresses of %d bytes, which are not supported", u.sizes.addr)
	}
	u.sizes.refAddr = u.sizes.offset
	if u.version == 2 {
		u.sizes.refAddr = u.sizes.addr
	}
	if u.body = off + uint64(b.pos); u.body > u.end {
		return nil, info.fail(off, "a unit shorter than its header")
	}
	if u.table, err = r.abbrevTable(table, u.sizes); err != nil {
		return nil, err
	}
	if !r.budget.hold(1 << 10) {
		return nil, info.costly()
	}
	r.heads[off] = u
	return u, nil
}

// unitNumber returns unit n of .debug_info, counted from 0, or nil past the last one.
func (r *Reader) unitNumber(n int) (*unit, error) {
	info, err := r.section(".debug_info")
	if err != nil {
		return nil, err
	}
	for n >= len(r.units) {
		off := uint64(0)
		if k := len(r.units); k > 0 {
			off = r.units[k-1].end
		}
		if off >= info.size {
			return nil, nil
		}
		if len(r.units) == maxUnits {
			return nil, info.fail(off, "more than %d units", maxUnits)
		}
		u, err := r.unitAt(off)
		if err != nil {
			return nil, err
		}
		r.units = append(r.units, u)
	}
	return r.units[n], nil
}

// unitOf returns the unit that describes the code at an address, or nil. It uses .debug_aranges, which gcc writes, and reads the ranges of units that are
// not in it.
func (r *Reader) unitOf(pc uint64) (*unit, error) {
	if err := r.readAranges(); err != nil {
		return nil, err
	}
	for _, a := range r.aranges {
		if a.Contains(machine.Addr(pc)) {
			return r.unitAt(a.unit)
		}
	}
	for n := 0; ; n++ {
		u, err := r.unitNumber(n)
		if u == nil || err != nil {
			return nil, err
		}
		if r.arranged[u.off] {
			continue
		}
		if err := u.readRanges(); err != nil {
			return nil, err
		}
		if within(u.ranges, pc) {
			return u, nil
		}
	}
}

// unitWith returns the unit that contains the entry at an offset.
func (r *Reader) unitWith(off uint64) (*unit, error) {
	for n := 0; ; n++ {
		u, err := r.unitNumber(n)
		if u == nil || err != nil {
			return nil, err
		}
		if off >= u.body && off < u.end {
			return u, nil
		}
	}
}

// readRoot reads the first entry of the unit, whose attributes are needed to decode others.
func (u *unit) readRoot() error {
	if !u.rooted {
		u.rooted = true
		u.root, u.rootErr = u.entryAt(u.body)
	}
	return u.rootErr
}

// readRanges reads the ranges of code that the unit describes.
func (u *unit) readRanges() error {
	if u.ranged {
		return nil
	}
	if err := u.readRoot(); err != nil {
		return err
	}
	ranges, err := u.spans(&u.root)
	u.ranges, u.ranged = ranges, err == nil
	return err
}

func within(ranges []machine.Range, pc uint64) bool {
	for _, s := range ranges {
		if s.Contains(machine.Addr(pc)) {
			return true
		}
	}
	return false
}

// arange is a range of code and its unit.
type arange struct {
	machine.Range
	unit uint64 // offset of the unit's header
}

// readAranges reads .debug_aranges (DWARF 5, 6.1.2).
func (r *Reader) readAranges() error {
	if r.arranged != nil {
		return nil
	}
	s, err := r.section(".debug_aranges")
	if err != nil {
		return err
	}
	data, err := s.bytes(0, s.size)
	if err != nil {
		return err
	}
	arranged, all := map[uint64]bool{}, buf{data: data, order: r.order}
	var list []arange
	for all.more() {
		n, wide := all.length()
		from := all.pos
		if all.skip(n); all.err != nil {
			return s.fail(uint64(from), "%w", all.err)
		}
		b := buf{data: data[:all.pos], pos: from, order: r.order}
		version, offset := b.uint(2), 4
		if wide {
			offset = 8
		}
		unit, size, segment := b.uint(offset), b.uint(1), b.uint(1)
		if b.err != nil || version != 2 || size != 4 && size != 8 || segment != 0 {
			continue
		}
		// The first pair is aligned to its size, relative to the start of the set.
		start := uint64(from) - 4
		if wide {
			start = uint64(from) - 12
		}
		b.skip(-(uint64(b.pos) - start) & (2*size - 1))
		arranged[unit] = true
		for b.more() {
			low, length := b.uint(int(size)), b.uint(int(size))
			if low == 0 && length == 0 {
				break
			}
			if u := (arange{r.span(low, low+length), unit}); !u.Empty() {
				list = append(list, u)
			}
		}
	}
	r.aranges, r.arranged = list, arranged
	return nil
}

// span returns a range of code. It is empty if the linker removed the code and wrote 0 or the highest address instead.
func (r *Reader) span(low, high uint64) machine.Range {
	if low >= high || low == 0 && !r.atZero {
		return machine.Range{}
	}
	return machine.Range{Start: machine.Addr(low), End: machine.Addr(high)}
}

// spans returns the ranges of code that an entry describes.
func (u *unit) spans(e *entry) ([]machine.Range, error) {
	if e.ranges.present() {
		return u.rangeList(e.ranges)
	}
	if !e.low.present() || !e.high.present() {
		return nil, nil
	}
	low, err := u.address(e.low)
	if err != nil {
		return nil, err
	}
	high := low + e.high.u
	if e.high.address() {
		if high, err = u.address(e.high); err != nil {
			return nil, err
		}
	}
	if s := u.r.span(low, high); !s.Empty() {
		return []machine.Range{s}, nil
	}
	return nil, nil
}

// address reports whether a value is an address. The value of DW_AT_high_pc may be a length instead.
func (v value) address() bool {
	switch v.form {
	case formAddr, formAddrx, formAddrx1, formAddrx2, formAddrx3, formAddrx4, formGNUAddrIndex:
		return true
	}
	return false
}

// address returns the address that a value holds or refers to by index.
func (u *unit) address(v value) (uint64, error) {
	if v.form == formAddr {
		return v.u, nil
	}
	return u.indexed64(".debug_addr", u.root.addrBase, v.u, u.sizes.addr)
}

// indexed64 reads entry index of a table in a section; base is the offset of the table.
func (u *unit) indexed64(name string, base value, index uint64, size int) (uint64, error) {
	s, err := u.r.section(name)
	if err != nil {
		return 0, err
	}
	if !base.present() || index > s.size || base.u > s.size {
		return 0, s.fail(base.u, "no word %d", index)
	}
	return s.word(base.u+index*uint64(size), size)
}

// text returns the string that a value refers to; "" if it is in another file.
func (u *unit) text(v value) (string, error) {
	name, off := "", v.u
	switch v.form {
	case formString:
		name = ".debug_info"
	case formStrp:
		name = ".debug_str"
	case formLineStrp:
		name = ".debug_line_str"
	case formStrx, formStrx1, formStrx2, formStrx3, formStrx4:
		var err error
		if off, err = u.indexed64(".debug_str_offsets", u.root.strOffsetsBase, v.u, u.sizes.offset); err != nil {
			return "", err
		}
		name = ".debug_str"
	default:
		return "", nil
	}
	s, err := u.r.section(name)
	if err != nil {
		return "", err
	}
	return s.string(off)
}

// These are the kinds of entries in .debug_rnglists (DWARF 5, 7.25).
const (
	rleEndOfList = iota
	rleBaseAddressx
	rleStartxEndx
	rleStartxLength
	rleOffsetPair
	rleBaseAddress
	rleStartEnd
	rleStartLength
)

// maxRanges limits the entries of one list. The list of a unit has an entry for each of its functions.
const maxRanges = 1 << 20

// rangeList reads a list of ranges from .debug_rnglists or .debug_ranges.
func (u *unit) rangeList(v value) ([]machine.Range, error) {
	name, off := ".debug_ranges", v.u
	if u.version >= 5 {
		name = ".debug_rnglists"
	}
	s, err := u.r.section(name)
	if err != nil {
		return nil, err
	}
	if v.form == formRnglistx {
		at, err := u.indexed64(name, u.root.rnglistsBase, v.u, u.sizes.offset)
		if err != nil {
			return nil, err
		}
		off = u.root.rnglistsBase.u + at
	}
	base := uint64(0)
	if u.root.low.present() {
		if base, err = u.address(u.root.low); err != nil {
			return nil, err
		}
	}
	var list []machine.Range
	for window := uint64(256); ; window = min(4*window, 64<<10) {
		data, err := s.upTo(off, window)
		if err != nil {
			return nil, err
		}
		b := buf{data: data, order: u.r.order}
		done := 0 // bytes of complete entries
		for {
			low, high, kind, err := u.rangeEntry(&b, &base)
			if err != nil {
				return nil, err
			}
			if b.err != nil {
				break
			}
			if kind == rleEndOfList {
				return list, nil
			}
			done = b.pos
			if x := u.r.span(low, high); kind != rleBaseAddress && !x.Empty() {
				list = append(list, x)
				if !u.r.budget.hold(16) {
					return nil, s.costly()
				}
			}
			if len(list) > maxRanges {
				return nil, s.fail(off, "a list of more than %d ranges", maxRanges)
			}
		}
		if off += uint64(done); b.err != errTruncated || done == 0 && uint64(len(data)) < window || done == 0 && window >= 64<<10 {
			return nil, s.fail(off, "%w", b.err)
		}
	}
}

// rangeEntry reads one entry. For an entry that sets the base address, kind is rleBaseAddress.
func (u *unit) rangeEntry(b *buf, base *uint64) (low, high uint64, kind int, err error) {
	size := u.sizes.addr
	if u.version < 5 { // DWARF 4, 2.17.3
		low, high = b.uint(size), b.uint(size)
		switch highest := ^uint64(0) >> (64 - 8*size); {
		case low == 0 && high == 0:
			return 0, 0, rleEndOfList, nil
		case low == highest:
			if b.err == nil {
				*base = high
			}
			return 0, 0, rleBaseAddress, nil
		}
		return *base + low, *base + high, rleOffsetPair, nil
	}
	indexed := func() uint64 {
		index := b.uleb()
		if b.err != nil || err != nil {
			return 0
		}
		var at uint64
		at, err = u.address(value{formAddrx, index})
		return at
	}
	switch kind = int(b.uint(1)); kind {
	case rleEndOfList:
		if b.err != nil {
			kind = rleOffsetPair
		}
	case rleBaseAddressx:
		if at := indexed(); b.err == nil {
			*base = at
		}
		kind = rleBaseAddress
	case rleBaseAddress:
		if at := b.uint(size); b.err == nil {
			*base = at
		}
	case rleStartxEndx:
		low, high = indexed(), indexed()
	case rleStartxLength:
		low = indexed()
		high = low + b.uleb()
	case rleOffsetPair:
		low, high = *base+b.uleb(), *base+b.uleb()
	case rleStartEnd:
		low, high = b.uint(size), b.uint(size)
	case rleStartLength:
		low = b.uint(size)
		high = low + b.uleb()
	default:
		b.fail(fmt.Errorf("a range of unknown kind %d", kind))
	}
	return low, high, kind, err
}
