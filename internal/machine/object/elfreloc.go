package object

import (
	"debug/elf"
	"fmt"
)

// Section types that debug/elf has no name for: relocations in forms that take less room.
const (
	shtRELR        elf.SectionType = 19         // System V ABI, draft of 2018
	shtCREL        elf.SectionType = 0x40000014 // LLVM 19 and later, on request
	shtAndroidREL  elf.SectionType = 0x60000001 // lld, on request
	shtAndroidRELA elf.SectionType = 0x60000002
	shtAndroidRELR elf.SectionType = 0x6fffff00 // what shtRELR was called before it had a number
)

// relocate applies what an unlinked image leaves to the linker, or a linked one to the loader.
func (f *elfFormat) relocate(s *Section, data []byte) (done []Relocation, err error) {
	if !f.relocatable() {
		return f.load(s, data)
	}
	applied := false
	for n, r := range f.file.Sections {
		if int(r.Info) != s.index {
			continue
		}
		fail := func(format string, args ...any) error {
			return &Error{f.image.Name, r.Name, 0, fmt.Errorf(format, args...)}
		}
		switch r.Type {
		case elf.SHT_REL:
			return nil, fail("relocations without addends (SHT_REL) do not occur on %v", f.file.Machine)
		case shtCREL, shtAndroidREL, shtAndroidRELA:
			return nil, fail("compact relocations (section type %#x) cannot be read", uint32(r.Type))
		case elf.SHT_RELA:
			// LLVM and the assemblers write one. A hostile object has one for each section
			// header that it has, all of them with the same rows.
			if applied {
				return nil, fail("relocates %s a second time", s.Name)
			}
			applied = true
			if done, err = f.link(s, data, f.image.all[n]); err != nil {
				return nil, err
			}
		}
	}
	return done, nil
}

// relaRow is one row of an SHT_RELA section (System V ABI, chapter 4, "Relocation").
type relaRow struct {
	at     int64 // where the row lies in its section
	off    uint64
	symbol uint64
	kind   uint32
	addend uint64
}

// rela is an SHT_RELA section, or one of a linked image in another form that has the same rows.
type rela struct {
	f       *elfFormat
	section *Section
	rows    []byte
	symbols *symbolTable // nil where the section names none
	inPlace bool         // the addends are stored in the places (SHT_REL), and those of the rows are 0
}

// word is the size of an address in the structures of the file: 8, or 4 in those of ELFCLASS32.
func (f *elfFormat) word() int {
	if f.file.Class == elf.ELFCLASS32 {
		return 4
	}
	return 8
}

func (f *elfFormat) rela(s *Section) (*rela, error) {
	if _, known := fixups[f.file.Machine]; !known {
		return nil, &Error{f.image.Name, s.Name, 0, fmt.Errorf("the relocations of %v are not known", f.file.Machine)}
	}
	r := &rela{f: f, section: s}
	link, all := f.file.Sections[s.index].Link, f.image.all
	if uint64(link) >= uint64(len(all)) {
		return nil, r.fail(0, "names section %d of %d as its symbol table", link, len(all))
	}
	var err error
	// A static position-independent executable has no dynamic symbols, and needs none.
	if link != 0 || f.relocatable() {
		if r.symbols, err = f.table(all[link]); err != nil {
			return nil, err
		}
	}
	r.rows, err = s.Data()
	return r, err
}

func (r *rela) fail(at int64, format string, args ...any) error {
	return &Error{r.f.image.Name, r.section.Name, at, fmt.Errorf(format, args...)}
}

// size returns the bytes of a row.
func (r *rela) size() int {
	if r.inPlace {
		return 2 * r.f.word()
	}
	return 3 * r.f.word()
}

func (r *rela) len() int { return len(r.rows) / r.size() }

func (r *rela) row(n int) relaRow {
	order, word, at := r.f.file.ByteOrder, r.f.word(), n*r.size()
	b := r.rows[at:]
	row := relaRow{at: int64(at), off: get(b, word, order)}
	row.setInfo(get(b[word:], word, order), word)
	if !r.inPlace {
		row.addend = signed(get(b[2*word:], word, order), word)
	}
	return row
}

// setInfo takes apart r_info, which has word bytes.
func (r *relaRow) setInfo(info uint64, word int) {
	if word == 4 {
		r.symbol, r.kind = info>>8, uint32(info&0xff)
	} else {
		r.symbol, r.kind = info>>32, uint32(info)
	}
}

// signed extends the sign of a number of size bytes.
func signed(v uint64, size int) uint64 {
	shift := 64 - 8*size
	return uint64(int64(v<<shift) >> shift)
}

// symbol returns the symbol of a row.
func (r *rela) symbol(row relaRow) (rawSymbol, error) {
	if r.symbols == nil {
		if row.symbol != 0 {
			return rawSymbol{}, r.fail(row.at, "symbol %d of no symbol table", row.symbol)
		}
		return rawSymbol{section: undefined}, nil
	}
	sym, ok := r.symbols.at(row.symbol)
	if !ok {
		return sym, r.fail(row.at, "symbol %d is past the end of the symbol table", row.symbol)
	}
	return sym, nil
}

// fixup returns what a row does. Kinds that only a linker or a loader can resolve, with tables that
// it makes itself (GOT, TLS) or in the bits of an instruction, are left to it: !here.
func (r *rela) fixup(row relaRow) (x fixup, here bool, err error) {
	if x, here = fixups[r.f.file.Machine][row.kind]; here {
		return x, true, nil
	}
	name, known := kindName(r.f.file.Machine, row.kind)
	if !known {
		return x, false, r.fail(row.at, "relocation %s of %v is not known here", name, r.f.file.Machine)
	}
	return x, false, nil
}

// link applies one SHT_RELA section to data, the bytes of s, a section of an unlinked image.
//
// Where a linker may shorten code (RISC-V, LoongArch), the distance of two labels is two relocations
// of one place. A place is done as a whole or not at all.
func (f *elfFormat) link(s *Section, data []byte, table *Section) (done []Relocation, err error) {
	r, err := f.rela(table)
	if err != nil {
		return nil, err
	}
	type step struct {
		fixup
		value uint64
	}
	var steps []step
	for n := 0; n < r.len(); {
		first, from := r.row(n), len(done)
		steps = steps[:0]
		all := true
		for ; n < r.len(); n++ {
			row := r.row(n)
			if row.off != first.off {
				break
			}
			sym, err := r.symbol(row)
			if err != nil {
				return nil, err
			}
			x, here, err := r.fixup(row)
			switch {
			case err != nil:
				return nil, err
			case here && x.action == nothing:
				continue
			case row.off > uint64(len(data)) || uint64(len(data))-row.off < uint64(x.size):
				return nil, r.fail(row.at, "relocates offset %#x of a section of %#x bytes", row.off, len(data))
			}
			addr, defined := f.image.address(sym)
			all = all && here && defined
			steps = append(steps, step{x, uint64(addr) + row.addend})
			done = append(done, Relocation{Offset: row.off, Addend: int64(row.addend), symbol: sym, table: r.symbols})
		}
		if !all {
			continue
		}
		for i, x := range steps {
			x.apply(data[first.off:], x.value, uint64(s.Loaded())+first.off, f.file.ByteOrder)
			done[from+i].Defined = true
		}
	}
	return done, nil
}
