package stackmap

import (
	"encoding/binary"
	"fmt"
	"math"

	"example.com/reframe/internal/machine"
)

// scan reads consecutive blobs in one layout, and checks every count against the bytes. It allocates only for the maps that it fills, and for its
// error.
type scan struct {
	layout *layout
	data   []byte // the section
	big    bool
	at     int // start of the current blob; offsets in the methods are relative to it
	err    *Error
	far    int // position in the section up to which the part before the records was read

	// What the scan found, to choose between layouts that fit.
	dirty     bool // a reserved byte of a location or live-out is not zero
	located   bool // there is a location
	functions bool // there is a function
}

func (s *scan) fail(at int, format string, args ...any) (int, bool) {
	s.err = &Error{int64(s.at + at), fmt.Errorf(format, args...)}
	return 0, false
}

// cut fails because count items at offset at exceed the section.
func (s *scan) cut(at int, count uint64, what string) (int, bool) {
	return s.fail(at, "%d %s in %d bytes: %w", count, what, len(s.data)-s.at-at, ErrTruncated)
}

// blob reads the blob at position at of the section, and returns its end. It stores the blob's values in m, unless m is nil.
func (s *scan) blob(at int, m *Map) (int, bool) {
	s.at = at
	d := s.data[at:]
	if len(d) > 0 && !s.layout.has(int(d[0])) {
		if named(d[0]) == nil {
			return s.fail(0, "version %d is not supported; expected 1, 2 or 3", d[0])
		}
		return s.fail(0, "layout %s has no version %d", s.layout.dialect, d[0])
	}
	if len(d) < headerSize {
		return s.fail(0, "a header in %d bytes: %w", len(d), ErrTruncated)
	}
	for i := 1; i < 4; i++ {
		if d[i] != 0 {
			return s.fail(i, "the header's reserved bytes are not zero")
		}
	}
	functions, constants, records := u32(d, 4, s.big), u32(d, 8, s.big), u32(d, 12, s.big)
	rest := uint64(len(d) - headerSize)
	table := uint64(functions) * uint64(s.layout.functionSize)
	pool := uint64(constants) * constantSize
	switch {
	case table > rest:
		return s.cut(headerSize, uint64(functions), "functions")
	case pool > rest:
		return s.cut(headerSize, uint64(constants), "constants")
	case uint64(records)*smallestEntry > rest:
		return s.cut(headerSize, uint64(records), "records")
	case table+pool > rest:
		return s.cut(headerSize+int(table), uint64(constants), "constants")
	}
	if m != nil {
		m.Version, m.Dialect, m.Offset = int(d[0]), s.layout.dialect, int64(at)
		m.big, m.layout, m.constants = s.big, s.layout, int(constants)
		m.records = headerSize + int(table+pool)
		m.Functions = make([]Function, functions)
		m.first = make([]uint32, functions)
	}
	s.functions = s.functions || functions > 0
	s.far = at + headerSize + int(table)
	if !s.table(m, int(functions), records) {
		return 0, false
	}
	end, ok := s.entries(m, headerSize+int(table+pool), records)
	if ok && s.layout.extended {
		end, ok = s.prologues(m, end, int(functions))
	}
	if !ok {
		return 0, false
	}
	if m != nil {
		m.Size, m.data = int64(end), d[:end:end]
	}
	return at + end, true
}

// table reads the table of functions.
func (s *scan) table(m *Map, functions int, records uint32) bool {
	d := s.data[s.at:]
	var sum uint64
	for i := range functions {
		row := headerSize + i*s.layout.functionSize
		var count uint64
		if s.layout.counted {
			if count = u64(d, row+16, s.big); count > uint64(records) {
				s.fail(row+16, "function %d claims %d of %d records", i, count, records)
				return false
			}
			sum += count
		} else if functions == 1 {
			count = uint64(records)
		}
		if m != nil {
			m.Functions[i] = Function{machine.Addr(u64(d, row, s.big)), u64(d, row+8, s.big), uint32(i), uint32(count)}
		}
	}
	switch {
	case s.layout.counted && sum != uint64(records):
		s.fail(12, "the functions claim %d records, the header %d", sum, records)
		return false
	case m != nil && !s.layout.counted && functions != 1:
		m.loose = int(records)
	}
	return true
}

// entries reads all records of a blob, from offset p on, and returns their end.
func (s *scan) entries(m *Map, p int, records uint32) (int, bool) {
	if m == nil {
		return s.run(p, records)
	}
	if uint64(len(s.data)-s.at)/alignment > math.MaxUint32 {
		return s.fail(0, "a section of over 32 GiB")
	}
	ok := true
	for i := range m.Functions {
		m.first[i] = uint32(p / alignment)
		if p, ok = s.run(p, m.Functions[i].records); !ok {
			return 0, false
		}
	}
	return s.run(p, uint32(m.loose))
}

// reservedLocation masks the reserved bytes in the first eight bytes of a location, loaded as a little-endian number: the byte after the kind, and
// the two bytes after the register.
const reservedLocation = 0xffff00000000ff00

// run reads a number of records from offset p on, and returns their end.
func (s *scan) run(p int, records uint32) (int, bool) {
	d := s.data[s.at:]
	ok := true
	for ; records > 0; records-- {
		if len(d)-p < recordHead {
			return s.cut(p, uint64(records), "records")
		}
		count := int(u16(d, p+14, s.big))
		p += recordHead
		switch {
		case s.layout.variables:
			if p, ok = s.variables(d, p, count); !ok {
				return 0, false
			}
		case count > 0:
			if p, ok = s.locations(d, p, count); !ok {
				return 0, false
			}
		}
		p = align(p)
		if len(d)-p < liveOutHead {
			return s.fail(min(p, len(d)), "live-outs: %w", ErrTruncated)
		}
		count = int(u16(d, p+2, s.big))
		p += liveOutHead
		if len(d)-p < count*liveOutSize {
			return s.cut(p, uint64(count), "live-outs")
		}
		for range count {
			s.dirty = s.dirty || d[p+2] != 0
			p += liveOutSize
		}
		if p = align(p); p > len(d) {
			return s.fail(len(d), "padding: %w", ErrTruncated)
		}
	}
	return p, true
}

// locations reads count locations without extra locations.
func (s *scan) locations(d []byte, p, count int) (int, bool) {
	size := s.layout.locationSize
	if len(d)-p < count*size {
		return s.cut(p, uint64(count), "locations")
	}
	reserved := uint64(reservedLocation)
	if size == 8 {
		reserved = 0 // in V1 and V2 these bytes hold the size and the offset
	}
	s.located = s.located || count > 0
	var seen uint64
	for end := p + count*size; p < end; p += size {
		v := binary.LittleEndian.Uint64(d[p:])
		if byte(v)-1 > byte(ConstantIndex)-1 {
			return s.fail(p, "unknown location kind %d", byte(v))
		}
		seen |= v
	}
	s.dirty = s.dirty || seen&reserved != 0
	return p, true
}

// variables reads count live variables.
func (s *scan) variables(d []byte, p, count int) (int, bool) {
	ok := true
	for ; count > 0; count-- {
		if p == len(d) {
			return s.cut(p, uint64(count), "live variables")
		}
		n := int(d[p])
		p++
		if !s.layout.extended {
			if p, ok = s.locations(d, p, n); !ok {
				return 0, false
			}
			continue
		}
		for ; n > 0; n-- {
			if len(d)-p < s.layout.locationSize {
				return s.cut(p, uint64(n), "locations")
			}
			v := binary.LittleEndian.Uint64(d[p:])
			if byte(v)-1 > byte(ConstantIndex)-1 {
				return s.fail(p, "unknown location kind %d", byte(v))
			}
			s.located = true
			s.dirty = s.dirty || v&reservedLocation != 0
			extra := int(u16(d, p+8, s.big))
			if len(d)-p-s.layout.locationSize < 2*extra {
				return s.cut(p+10, uint64(extra), "extra locations")
			}
			p += s.layout.locationSize + 2*extra
		}
	}
	return p, true
}

// prologues reads the table that ends a map of layout Yk.
func (s *scan) prologues(m *Map, start, functions int) (int, bool) {
	d := s.data[s.at:]
	if m != nil {
		m.tail, m.prologues = start, make([]uint32, functions)
	}
	p := start
	for i := range functions {
		if len(d)-p < prologueHead {
			return s.cut(p, uint64(functions-i), "prologues")
		}
		if d[p] > 1 {
			return s.fail(p, "the prologue of function %d has %d as its frame pointer flag; expected 0 or 1", i, d[p])
		}
		if m != nil {
			if uint64(p-start)/2 > math.MaxUint32 {
				return s.fail(p, "prologues of over 8 GiB")
			}
			m.prologues[i] = uint32((p - start) / 2)
		}
		saved := u32(d, p+2, s.big)
		p += prologueHead
		if uint64(saved)*savedSize > uint64(len(d)-p) {
			return s.cut(p, uint64(saved), "saved registers")
		}
		p += int(saved) * savedSize
	}
	return p, true
}
