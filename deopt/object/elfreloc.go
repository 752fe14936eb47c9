package object

import (
	"debug/elf"
	"fmt"
)

// relocate applies the relocations of an unlinked image, as System V ABI, AMD64
// supplement, table 4.10 says.
func (f *elfFormat) relocate(s *Section, data []byte) (done []Relocation, err error) {
	if !f.relocatable() {
		return nil, nil
	}
	applied := false
	for n, r := range f.file.Sections {
		if r.Type == elf.SHT_REL && int(r.Info) == s.index {
			return nil, &Error{f.image.Name, r.Name, 0, fmt.Errorf("relocations without addends (SHT_REL) do not occur on %v", f.file.Machine)}
		}
		if r.Type != elf.SHT_RELA || int(r.Info) != s.index {
			continue
		}
		// LLVM and the assemblers write one. A hostile object has one for each section
		// header that it has, all of them with the same rows.
		if applied {
			return nil, &Error{f.image.Name, r.Name, 0, fmt.Errorf("relocates %s a second time", s.Name)}
		}
		applied = true
		if done, err = f.apply(s, data, f.image.all[n]); err != nil {
			return nil, err
		}
	}
	return done, nil
}

// apply applies one SHT_RELA section to data, the bytes of s.
func (f *elfFormat) apply(s *Section, data []byte, rela *Section) (done []Relocation, err error) {
	img := f.image
	if _, err := img.Arch(); err != nil {
		return nil, err
	}
	link := f.file.Sections[rela.index].Link
	if int(link) >= len(img.all) {
		return nil, &Error{img.Name, rela.Name, 0, fmt.Errorf("names section %d of %d as its symbol table", link, len(img.all))}
	}
	symbols, err := f.table(img.all[link])
	if err != nil {
		return nil, err
	}
	rows, err := rela.Data()
	if err != nil {
		return nil, err
	}
	order := f.file.ByteOrder
	const row = 24
	for at := 0; at+row <= len(rows); at += row {
		fail := func(format string, args ...any) error {
			return &Error{img.Name, rela.Name, int64(at), fmt.Errorf(format, args...)}
		}
		off, info := order.Uint64(rows[at:]), order.Uint64(rows[at+8:])
		addend := order.Uint64(rows[at+16:])
		kind := elf.R_X86_64(info & 0xffffffff)
		sym, ok := symbols.at(info >> 32)
		if !ok {
			return nil, fail("symbol %d is past the end of the symbol table", info>>32)
		}
		if kind == elf.R_X86_64_NONE {
			continue
		}
		size, relative, known := relocShape(kind)
		if !known {
			return nil, fail("relocation %v is not known here", kind)
		}
		if off > uint64(len(data)) || uint64(len(data))-off < uint64(size) {
			return nil, fail("relocates offset %#x of a section of %#x bytes", off, len(data))
		}
		addr, defined := img.address(sym)
		done = append(done, Relocation{Offset: off, Addend: int64(addend), Defined: defined, symbol: sym, table: symbols})
		if !defined {
			continue
		}
		value := uint64(addr) + addend
		if relative {
			value -= uint64(s.Loaded()) + off
		}
		put(data[off:], size, value, order)
	}
	return done, nil
}

// relocShape gives the width of a relocation in bytes and whether it is relative to its place.
func relocShape(kind elf.R_X86_64) (size int, relative, known bool) {
	switch kind {
	case elf.R_X86_64_64:
		return 8, false, true
	case elf.R_X86_64_PC64:
		return 8, true, true
	case elf.R_X86_64_32, elf.R_X86_64_32S:
		return 4, false, true
	case elf.R_X86_64_PC32, elf.R_X86_64_PLT32:
		return 4, true, true
	}
	return 0, false, false
}
