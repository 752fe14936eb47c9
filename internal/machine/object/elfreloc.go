package object

import (
	"debug/elf"
	"fmt"
)

// These section types have no name in debug/elf. They hold relocations in compact forms.
const (
	shtRELR        elf.SectionType = 19         // System V ABI, draft of 2018
	shtCREL        elf.SectionType = 0x40000014 // LLVM 19 and later, with an option
	shtAndroidREL  elf.SectionType = 0x60000001 // lld, with an option
	shtAndroidRELA elf.SectionType = 0x60000002
	shtAndroidRELR elf.SectionType = 0x6fffff00 // the older number of shtRELR
)

// relocate applies the relocations that an unlinked image leaves to the linker, or a linked one to the loader.
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
			return nil, f.image.compact(r.Name, r.Type)
		case elf.SHT_RELA:
			// LLVM and assemblers write one table for a section. A hostile object may have one for each section header, all with the same rows.
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
	at     int64 // offset of the row in its section
	off    uint64
	symbol uint64
	kind   uint32
	addend uint64
}

// rela is an SHT_RELA section, or a section of a linked image in another form with the same rows.
type rela struct {
	f       *elfFormat
	section *Section
	rows    []byte
	symbols *symbolTable // nil if the section names no symbol table
	inPlace bool         // the places hold the addends (SHT_REL), and those of the rows are 0
}

// word returns the size of an address in the structures of the file: 8, or 4 for ELFCLASS32.
func (f *elfFormat) word() int {
	if f.file.Class == elf.ELFCLASS32 {
		return 4
	}
	return 8
}

func (f *elfFormat) rela(s *Section) (*rela, error) {
	if _, known := fixups[f.file.Machine]; !known {
		return nil, &Error{f.image.Name, s.Name, 0, fmt.Errorf("relocations of %v are not supported", f.file.Machine)}
	}
	r := &rela{f: f, section: s}
	link, all := f.file.Sections[s.index].Link, f.image.all
	if uint64(link) >= uint64(len(all)) {
		return nil, r.fail(0, "has section %d of %d as its symbol table", link, len(all))
	}
	var err error
	// A static position-independent executable has no dynamic symbols.
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

// size returns the size of a row in bytes.
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

// setInfo decodes r_info, which has word bytes.
func (r *relaRow) setInfo(info uint64, word int) {
	if word == 4 {
		r.symbol, r.kind = info>>8, uint32(info&0xff)
	} else {
		r.symbol, r.kind = info>>32, uint32(info)
	}
}

// signed sign-extends a number of size bytes.
func signed(v uint64, size int) uint64 {
	shift := 64 - 8*size
	return uint64(int64(v<<shift) >> shift)
}

// symbol returns the symbol of a row.
func (r *rela) symbol(row relaRow) (rawSymbol, error) {
	if r.symbols == nil {
		if row.symbol != 0 {
			return rawSymbol{}, r.fail(row.at, "symbol %d without a symbol table", row.symbol)
		}
		return rawSymbol{section: undefined}, nil
	}
	sym, ok := r.symbols.at(row.symbol)
	if !ok {
		return sym, r.fail(row.at, "symbol %d is past the end of the symbol table", row.symbol)
	}
	return sym, nil
}

// fixup returns the effect of a row. here is false for kinds that only a linker or loader can apply: some need the tables that it creates (GOT, TLS),
// others change bits of an instruction.
func (r *rela) fixup(row relaRow) (x fixup, here bool, err error) {
	if x, here = fixups[r.f.file.Machine][row.kind]; here {
		return x, true, nil
	}
	name, known := kindName(r.f.file.Machine, row.kind)
	if !known {
		return x, false, r.fail(row.at, "relocation %s of %v is not supported", name, r.f.file.Machine)
	}
	return x, false, nil
}

// link applies one SHT_RELA section to data, the bytes of s, a section of an unlinked image.
//
// If a linker may shorten code (RISC-V, LoongArch), the distance of two labels is encoded as two relocations of one place. link applies all relocations of
// a place or none.
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
