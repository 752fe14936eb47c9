package stackmap

import (
	"iter"
	"slices"

	"example.com/reframe/internal/machine"
)

// Records iterates over the records of f, or over the unattributed ones if f is nil, in the order of the section. The Record and its slices are valid
// until the next step; Clone copies one. f must be one of m.Functions.
func (m *Map) Records(f *Function) iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		d := decoder{m: m}
		d.locs, d.outs = d.fewLocs[:0], d.fewOuts[:0]
		var n int
		if d.at, n = m.start(f); n == 0 {
			return
		}
		for range n {
			if !yield(d.next()) {
				return
			}
		}
	}
}

// start returns the offset in the blob of the first record of f, and the number of records of f.
func (m *Map) start(f *Function) (at, n int) {
	switch {
	case f == nil:
		return m.records, m.loose // a layout without record counts: all records are unattributed
	case int(f.row) >= len(m.first):
		return 0, 0
	}
	return int(m.first[f.row]) * alignment, f.Len()
}

// decoder decodes records in order. It needs no bounds checks: the parser has checked every count against the bytes.
type decoder struct {
	m    *Map
	at   int
	rec  Record
	locs []Location
	outs []LiveOut
	vars []int
	more [][]int16

	// Space for most records. It saves an allocation, because Records makes a decoder for each function.
	fewLocs [12]Location
	fewOuts [12]LiveOut

	pool []int16 // backing array of the slices in more
}

func (d *decoder) next() *Record {
	b, big, l := d.m.data, d.m.big, d.m.layout
	p := d.at
	d.rec = Record{
		ID: RecordID(u64(b, p, big)), Offset: u32(b, p+8, big), Flags: u16(b, p+12, big),
		Pos: d.m.Offset + int64(p),
	}
	count := int(u16(b, p+14, big))
	p += recordHead
	d.locs, d.vars, d.more, d.pool = d.locs[:0], d.vars[:0], d.more[:0], d.pool[:0]
	switch {
	case !l.variables:
		p = d.locations(p, count)
	default:
		d.vars = slices.Grow(d.vars, count)
		for range count {
			n := int(b[p])
			d.vars = append(d.vars, n)
			if p++; l.extended {
				p = d.extended(p, n)
			} else {
				p = d.locations(p, n)
			}
		}
		d.rec.Vars = notNil(d.vars)
	}
	if l.extended {
		d.rec.Extra = notNil(d.more)
	}
	if len(d.locs) > 0 {
		d.rec.Locations = d.locs
	}
	p = align(p)
	if count = int(u16(b, p+2, big)); count > 0 {
		d.outs = slices.Grow(d.outs[:0], count)[:count]
		for i := range d.outs {
			at := p + liveOutHead + i*liveOutSize
			d.outs[i] = LiveOut{machine.DWARFReg(u16(b, at, big)), b[at+3]}
		}
		d.rec.LiveOuts = d.outs
	}
	d.at = align(p + liveOutHead + count*liveOutSize)
	return &d.rec
}

// notNil replaces nil by an empty slice, which means that the record has no live variables. Nil means that the layout has none.
func notNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// locations decodes n locations without extra locations, from offset p on, and returns their end.
func (d *decoder) locations(p, n int) int {
	b, big, size := d.m.data, d.m.big, d.m.layout.locationSize
	d.locs = slices.Grow(d.locs, n)
	for ; n > 0; n-- {
		if size == 8 {
			d.locs = append(d.locs, Location{Kind(b[p]), uint16(b[p+1]), machine.DWARFReg(u16(b, p+2, big)), int32(u32(b, p+4, big))})
		} else {
			d.locs = append(d.locs, Location{Kind(b[p]), u16(b, p+2, big), machine.DWARFReg(u16(b, p+4, big)), int32(u32(b, p+8, big))})
		}
		p += size
	}
	return p
}

// extended decodes n locations with their extra locations, from offset p on, and returns their end.
func (d *decoder) extended(p, n int) int {
	b, big := d.m.data, d.m.big
	for ; n > 0; n-- {
		l := Location{Kind: Kind(b[p]), Size: u16(b, p+2, big), Reg: machine.DWARFReg(u16(b, p+4, big))}
		extra := int(u16(b, p+8, big))
		p += 10
		from := len(d.pool)
		for range extra {
			d.pool = append(d.pool, int16(u16(b, p, big)))
			p += 2
		}
		l.Offset = int32(u32(b, p, big))
		p += 4
		d.locs = append(d.locs, l)
		if extra == 0 {
			d.more = append(d.more, nil)
		} else {
			d.more = append(d.more, d.pool[from:len(d.pool):len(d.pool)])
		}
	}
	return p
}

// end returns the end of the record at offset p.
func (m *Map) end(p int) int {
	b, l := m.data, m.layout
	count := int(u16(b, p+14, m.big))
	p += recordHead
	switch {
	case !l.variables:
		p += count * l.locationSize
	default:
		for range count {
			n := int(b[p])
			if p++; !l.extended {
				p += n * l.locationSize
				continue
			}
			for range n {
				p += l.locationSize + 2*int(u16(b, p+8, m.big))
			}
		}
	}
	p = align(p)
	return align(p + liveOutHead + liveOutSize*int(u16(b, p+2, m.big)))
}

// Prologue returns the prologue of m.Functions[i], or false if the layout has none.
func (m *Map) Prologue(i int) (Prologue, bool) {
	f := &m.Functions[i]
	if int(f.row) >= len(m.prologues) {
		return Prologue{}, false
	}
	at := m.prologue(f)
	p := Prologue{HasFramePointer: m.data[at] != 0}
	for n := u32(m.data, at+2, m.big); n > 0; n-- {
		if p.Saved == nil {
			p.Saved = make([]SavedRegister, 0, n)
		}
		row := at + prologueHead + len(p.Saved)*savedSize
		p.Saved = append(p.Saved, SavedRegister{machine.DWARFReg(u16(m.data, row, m.big)), int32(u32(m.data, row+4, m.big))})
	}
	return p, true
}

// prologue returns the offset in the blob of f's prologue. The layout must have prologues.
func (m *Map) prologue(f *Function) int { return m.tail + 2*int(m.prologues[f.row]) }
