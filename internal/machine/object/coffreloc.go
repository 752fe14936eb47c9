package object

import (
	"debug/pe"
	"encoding/binary"
	"fmt"
)

const coffRelocationSize = 10

// coffFixup describes the effect of a relocation of a COFF object. The relocated place holds the addend.
type coffFixup struct {
	size int // size of the place in bytes; 0 if only a linker can compute its contents
	to   coffBase
	skip uint64 // for fromPlace: the distance counts from the place plus skip
}

type coffBase uint8

const (
	fromZero    coffBase = iota // the address, or its distance from the image's address, which is 0 for an object
	fromPlace                   // the distance from the end of the place
	fromSection                 // the offset in the symbol's section
)

// coffFixups lists the relocations of the PE format, "Type Indicators". Those of size 0 change bits of an instruction, or store the section number in the
// linked image.
var coffFixups = map[uint16]map[uint16]coffFixup{
	pe.IMAGE_FILE_MACHINE_AMD64: {
		1: {8, fromZero, 0}, 2: {4, fromZero, 0}, 3: {4, fromZero, 0}, // ADDR64, ADDR32, ADDR32NB
		4: {4, fromPlace, 4}, 5: {4, fromPlace, 5}, 6: {4, fromPlace, 6}, // REL32, REL32_1 …
		7: {4, fromPlace, 7}, 8: {4, fromPlace, 8}, 9: {4, fromPlace, 9},
		0xa: {}, 0xb: {4, fromSection, 0}, 0xc: {}, 0xd: {}, // SECTION, SECREL, SECREL7, TOKEN
	},
	pe.IMAGE_FILE_MACHINE_ARM64: {
		1: {4, fromZero, 0}, 2: {4, fromZero, 0}, 0xe: {8, fromZero, 0}, // ADDR32, ADDR32NB, ADDR64
		3: {}, 4: {}, 5: {}, 6: {}, 7: {}, // BRANCH26, PAGEBASE_REL21, REL21, PAGEOFFSET_12A, PAGEOFFSET_12L
		8: {4, fromSection, 0}, 9: {}, 0xa: {}, 0xb: {}, // SECREL, SECREL_LOW12A, SECREL_HIGH12A, SECREL_LOW12L
		0xc: {}, 0xd: {}, 0xf: {}, 0x10: {}, 0x11: {4, fromPlace, 4}, // TOKEN, SECTION, BRANCH19, BRANCH14, REL32
	},
}

// relocate applies the relocations of an object. A linked image has its relocations applied already; it only lists the places that change when it is
// loaded at another address.
func (f *coffFormat) relocate(s *Section, data []byte) ([]Relocation, error) {
	h := f.headers[s.index]
	count := uint64(h.RelocationCount)
	if f.linked || count == 0 {
		return nil, nil
	}
	order, first := binary.LittleEndian, uint64(0)
	fail := func(n uint64, format string, args ...any) error {
		return &Error{f.image.Name, s.Name, -1, fmt.Errorf("its relocation %d: "+format, append([]any{n}, args...)...)}
	}
	kinds, ok := coffFixups[f.machine]
	if !ok {
		return nil, fail(0, "relocations of %s are not supported", coffMachines[f.machine])
	}
	if h.Flags&coffManyRelocs != 0 && count == 0xffff {
		// If the count does not fit, the first row holds it. The count includes that row.
		var b [4]byte
		if _, err := f.file.ReadAt(b[:], int64(h.Relocations)); err != nil {
			return nil, fail(0, "lies outside of the image")
		}
		count, first = uint64(order.Uint32(b[:])), 1
	}
	if uint64(h.Relocations)+count*coffRelocationSize > uint64(f.image.size) {
		return nil, fail(0, "%d of them lie outside of the image", count)
	}
	symbols, err := f.table()
	if err != nil {
		return nil, err
	}
	rows := make([]byte, count*coffRelocationSize)
	if _, err := f.file.ReadAt(rows, int64(h.Relocations)); err != nil {
		return nil, fail(0, "lies outside of the image")
	}
	var done []Relocation
	for n := first; n < count; n++ {
		row := rows[n*coffRelocationSize:]
		off, kind := uint64(order.Uint32(row)), order.Uint16(row[8:])
		if kind == 0 { // IMAGE_REL_*_ABSOLUTE: padding
			continue
		}
		x, ok := kinds[kind]
		if !ok {
			return nil, fail(n, "kind %#x of %s at %#x is not supported", kind, coffMachines[f.machine], off)
		}
		var sym rawSymbol
		if ok = symbols != nil; ok {
			sym, ok = symbols.at(uint64(order.Uint32(row[4:])))
		}
		switch {
		case !ok:
			return nil, fail(n, "symbol %d is past the end of the symbol table", order.Uint32(row[4:]))
		case off > uint64(len(data)) || uint64(len(data))-off < uint64(x.size):
			return nil, fail(n, "relocates offset %#x of a section of %#x bytes", off, len(data))
		}
		addr, defined := f.image.address(sym)
		r := Relocation{Offset: off, Defined: defined && x.size != 0, symbol: sym, table: symbols}
		if x.size != 0 {
			r.Addend = int64(get(data[off:], x.size, order))
			if x.size == 4 {
				r.Addend = int64(int32(r.Addend))
			}
		}
		if r.Defined {
			value := uint64(addr) + uint64(r.Addend)
			switch {
			case x.to == fromPlace:
				value -= uint64(s.Loaded()) + off + x.skip
			case x.to == fromSection:
				value = sym.value + uint64(r.Addend)
			}
			put(data[off:], x.size, value, order)
		}
		done = append(done, r)
	}
	return done, nil
}
