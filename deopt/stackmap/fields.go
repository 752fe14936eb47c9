package stackmap

import "iter"

// Field is one field of a blob ("Stack Map Format").
type Field struct {
	Pos   int64  // position in the section
	Bytes []byte // the field's bytes in the section; must not be changed
	Name  string // such as "kind", "offset" or "padding"
	Part  Part
	Index int // index of the location, live-out or constant; 0 otherwise
}

// Part identifies the part of a blob that contains a [Field].
type Part uint8

// The parts of a blob.
const (
	InHeader Part = iota
	InFunction
	InConstants
	InRecord // a field of a record that is not in a location or live-out
	InLocation
	InLiveOut
)

// Uint returns the field as an unsigned number of at most 64 bits.
func (m *Map) Uint(f Field) (v uint64) {
	for i := range f.Bytes {
		at := len(f.Bytes) - 1 - i
		if m.big {
			at = i
		}
		v = v<<8 | uint64(f.Bytes[at])
	}
	return v
}

// HeadFields iterates over the fields of the blob's header and of the table row of f.
func (m *Map) HeadFields(f *Function) iter.Seq[Field] {
	return func(yield func(Field) bool) {
		w := &fieldWalk{m: m, yield: yield, part: InHeader}
		w.all(0, "version", 1, "reserved", 1, "reserved", 2, "functions", 4, "constants", 4, "records", 4)
		w.part = InFunction
		at := int(m.FunctionPos(f) - m.Offset)
		if at = w.all(at, "address", 8, "stack size", 8); m.layout.counted {
			w.all(at, "records", 8)
		}
	}
}

// ConstantField returns entry i of the constant table. It panics if there is no such entry.
func (m *Map) ConstantField(i int) Field {
	_ = m.ConstantAt(i)
	p := headerSize + len(m.first)*m.layout.functionSize + i*constantSize
	return Field{m.Offset + int64(p), m.data[p:][:constantSize], "value", InConstants, i}
}

// Fields iterates over all fields of a record of m, in order and without gaps.
func (m *Map) Fields(rec *Record) iter.Seq[Field] {
	return func(yield func(Field) bool) {
		w := &fieldWalk{m: m, yield: yield, part: InRecord}
		b, l, big := m.data, m.layout, m.big
		p := int(rec.Pos - m.Offset)
		counts := "locations"
		if l.variables {
			counts = "live variables"
		}
		count := int(u16(b, p+14, big))
		p = w.all(p, "id", 8, "instruction offset", 4, "reserved", 2, counts, 2)
		variables := 1
		if l.variables {
			variables = count
		}
		for n := 0; variables > 0 && !w.done; variables-- {
			if w.part = InRecord; l.variables {
				count = int(b[p])
				p = w.all(p, "locations", 1)
			}
			w.part = InLocation
			for end := n + count; n < end && !w.done; n++ {
				w.index = n
				p = w.location(p)
			}
		}
		w.part, w.index = InRecord, 0
		p = w.padding(p)
		count = int(u16(b, p+2, big))
		p = w.all(p, "padding", 2, "live-outs", 2)
		w.part = InLiveOut
		for n := 0; n < count && !w.done; n++ {
			w.index = n
			p = w.all(p, "register", 2, "reserved", 1, "size", 1)
		}
		w.part, w.index = InRecord, 0
		w.padding(p)
	}
}

type fieldWalk struct {
	m     *Map
	yield func(Field) bool
	part  Part
	index int
	done  bool
}

// all yields consecutive fields from offset p on, and returns their end. fields alternates names and sizes.
func (w *fieldWalk) all(p int, fields ...any) int {
	for i := 0; i < len(fields); i += 2 {
		size := fields[i+1].(int)
		if !w.done {
			w.done = !w.yield(Field{w.m.Offset + int64(p), w.m.data[p:][:size], fields[i].(string), w.part, w.index})
		}
		p += size
	}
	return p
}

// location yields the fields of the location at offset p, and returns its end.
func (w *fieldWalk) location(p int) int {
	if w.m.layout.locationSize == 8 {
		return w.all(p, "kind", 1, "size", 1, "register", 2, "offset", 4)
	}
	if p = w.all(p, "kind", 1, "reserved", 1, "size", 2, "register", 2); !w.m.layout.extended {
		return w.all(p, "reserved", 2, "offset", 4)
	}
	extra := int(u16(w.m.data, p+2, w.m.big))
	if p = w.all(p, "reserved", 2, "extra locations", 2); extra > 0 {
		p = w.all(p, "extra", 2*extra)
	}
	return w.all(p, "offset", 4)
}

// padding yields the padding at offset p, and returns its end.
func (w *fieldWalk) padding(p int) int {
	if n := align(p) - p; n > 0 {
		return w.all(p, "padding", n)
	}
	return p
}
