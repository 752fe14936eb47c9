package object

import (
	"debug/elf"
	"errors"
	"fmt"

	"example.com/reframe/internal/machine"
)

// load applies the relocations of a linked image to data, the bytes of s, as the dynamic linker does for a load at the image's own addresses. Before
// that, a place holds its address (GNU ld) or 0 (lld).
func (f *elfFormat) load(s *Section, data []byte) (done []Relocation, err error) {
	if !s.Alloc {
		return nil, nil
	}
	left := uint64(f.image.size)
	for n, header := range f.file.Sections {
		table := f.image.all[n]
		switch header.Type {
		case elf.SHT_RELA, elf.SHT_REL, shtRELR, shtAndroidRELR, shtAndroidREL, shtAndroidRELA:
		default:
			continue
		}
		if !table.Alloc || table.Size == 0 {
			continue // relocations kept by --emit-relocs are applied already
		}
		// A hostile image may have many section headers for the same bytes.
		if table.Size > left {
			return nil, &Error{f.image.Name, table.Name, 0, errors.New("its tables of relocations overlap")}
		}
		left -= table.Size
		var more []Relocation
		switch header.Type {
		case elf.SHT_RELA, elf.SHT_REL:
			more, err = f.loadRows(s, data, table, header.Type == elf.SHT_REL)
		case shtRELR, shtAndroidRELR:
			more, err = f.loadRELR(s, data, table)
		default:
			err = f.image.compact(table.Name, header.Type)
		}
		if err != nil {
			return nil, err
		}
		done = append(done, more...)
	}
	return done, nil
}

// compact returns the error for relocations in Android's packed form (lld --pack-dyn-relocs=android), or in that of CREL.
func (i *Image) compact(table string, kind elf.SectionType) error {
	return &Error{i.Name, table, 0, fmt.Errorf("compact relocations (section type %#x) cannot be read", uint32(kind))}
}

func (f *elfFormat) loadRows(s *Section, data []byte, table *Section, inPlace bool) (done []Relocation, err error) {
	r, err := f.rela(table)
	if err != nil {
		return nil, err
	}
	r.inPlace = inPlace
	for n := range r.len() {
		row := r.row(n)
		off := row.off - uint64(s.Addr)
		if row.off < uint64(s.Addr) || off >= uint64(len(data)) {
			continue
		}
		sym, err := r.symbol(row)
		if err != nil {
			return nil, err
		}
		var x fixup
		var addr machine.Addr
		here, defined := true, true
		if size, ok := f.loadAddress(row.kind); ok {
			// The relocation adds the load bias, which is 0 for a load at the image's own address.
			x = fixup{size, absoluteTo}
		} else {
			if x, here, err = r.fixup(row); err != nil {
				return nil, err
			}
			addr, defined = linkedAddress(sym)
		}
		switch {
		case here && x.action == nothing:
			continue
		case uint64(len(data))-off < uint64(x.size):
			return nil, r.fail(row.at, "relocates offset %#x of a section of %#x bytes", off, len(data))
		}
		if here && r.inPlace {
			if x.action != absoluteTo && x.action != relativeTo {
				name, _ := kindName(f.file.Machine, row.kind)
				return nil, r.fail(row.at, "%s has no addend in its place", name)
			}
			row.addend = signed(get(data[off:], x.size, f.file.ByteOrder), x.size)
		}
		if here && defined {
			x.apply(data[off:], uint64(addr)+row.addend, row.off, f.file.ByteOrder)
		}
		done = append(done, Relocation{Offset: off, Addend: int64(row.addend), Defined: here && defined, symbol: sym, table: r.symbols})
	}
	return done, nil
}

// linkedAddress is like [Image.address], without the bias.
func linkedAddress(sym rawSymbol) (machine.Addr, bool) {
	return machine.Addr(sym.value), sym.section != undefined && sym.kind != placeless
}

// loadRELR lists the words to which the loader adds the load address; each word already holds an address. An even entry is the address of a word. An
// odd entry is a bitmap of the words that follow.
func (f *elfFormat) loadRELR(s *Section, data []byte, table *Section) (done []Relocation, err error) {
	rows, err := table.Data()
	if err != nil {
		return nil, err
	}
	order, word := f.file.ByteOrder, uint64(f.word())
	var next uint64
	place := func(at uint64) error {
		off := at - uint64(s.Addr)
		switch {
		case at < uint64(s.Addr) || off >= uint64(len(data)):
			return nil
		case uint64(len(data))-off < word:
			return &Error{f.image.Name, table.Name, 0, fmt.Errorf("relocates offset %#x of a section of %#x bytes", off, len(data))}
		case uint64(len(done)) >= uint64(len(data))/word:
			return &Error{f.image.Name, table.Name, 0, fmt.Errorf("relocates more words of %s than it has", s.Name)}
		}
		done = append(done, Relocation{Offset: off, Addend: int64(get(data[off:], int(word), order)), Defined: true})
		return nil
	}
	for at := uint64(0); at+word <= uint64(len(rows)); at += word {
		entry := get(rows[at:], int(word), order)
		if entry&1 == 0 {
			if err := place(entry); err != nil {
				return nil, err
			}
			next = entry + word
			continue
		}
		for bit := range 8*word - 1 {
			if entry>>(bit+1)&1 != 0 {
				if err := place(next + bit*word); err != nil {
					return nil, err
				}
			}
		}
		next += (8*word - 1) * word
	}
	return done, nil
}
