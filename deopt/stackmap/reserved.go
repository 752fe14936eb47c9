package stackmap

import "iter"

// Reserved is a non-zero field that the format reserves or uses as padding.
type Reserved struct {
	Pos    int64 // position in the section
	Name   string
	Value  uint64
	Record int64 // position of the record that contains the field; -1 for a field of a prologue
}

// Reserved yields the non-zero reserved fields of the records and the prologue of f, or of the unattributed records if f is nil. The parser rejects a
// header with non-zero reserved bytes, and [Record] has the flags of a record. The decoded types omit these bytes because they have no meaning.
func (m *Map) Reserved(f *Function) iter.Seq[Reserved] {
	return func(yield func(Reserved) bool) {
		w := &reservedWalk{m: m, yield: yield}
		at, n := m.start(f)
		for ; n > 0 && !w.done; n-- {
			w.record = m.Offset + int64(at)
			at = w.fields(at)
		}
		if w.record = -1; f != nil && int(f.row) < len(m.prologues) {
			w.prologue(m.prologue(f))
		}
	}
}

type reservedWalk struct {
	m      *Map
	yield  func(Reserved) bool
	record int64
	done   bool
}

// field yields the field of size bytes at offset p if it is not zero.
func (w *reservedWalk) field(p, size int, name string) {
	var v uint64
	for i := range size {
		shift := 8 * i
		if w.m.big {
			shift = 8 * (size - 1 - i)
		}
		v |= uint64(w.m.data[p+i]) << shift
	}
	if v != 0 && !w.done {
		w.done = !w.yield(Reserved{w.m.Offset + int64(p), name, v, w.record})
	}
}

// fields checks the reserved fields of the record at offset p, and returns the record's end.
func (w *reservedWalk) fields(p int) int {
	b, l, big := w.m.data, w.m.layout, w.m.big
	count := int(u16(b, p+14, big))
	p += recordHead
	variables := 1
	if l.variables {
		variables = count
	}
	for range variables {
		if l.variables {
			count = int(b[p])
			p++
		}
		for range count {
			if l.locationSize > 8 {
				w.field(p+1, 1, "the byte after a location's kind")
				w.field(p+6, 2, "the half-word after a location's register")
			}
			if l.extended {
				p += 2 * int(u16(b, p+8, big))
			}
			p += l.locationSize
		}
	}
	w.field(p, align(p)-p, "the padding after the locations")
	p = align(p)
	w.field(p, 2, "the half-word before the number of live-outs")
	count = int(u16(b, p+2, big))
	p += liveOutHead
	for range count {
		w.field(p+2, 1, "the byte after a live-out's register")
		p += liveOutSize
	}
	w.field(p, align(p)-p, "the padding after the live-outs")
	return align(p)
}

func (w *reservedWalk) prologue(p int) {
	w.field(p+1, 1, "the byte after a prologue's frame pointer")
	for n := u32(w.m.data, p+2, w.m.big); n > 0 && !w.done; n-- {
		w.field(p+prologueHead+2, 2, "the half-word after a saved register")
		p += savedSize
	}
}
