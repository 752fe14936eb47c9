package object

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"slices"

	"example.com/reframe/internal/machine"
)

// LoadAt sets the addresses of the sections in at, for an unlinked image. It places all other sections after these, so that distances in unwind
// information fit. The real addresses of those sections are unknown, so their symbols have no address. LoadAt returns an error if two sections in at
// overlap.
func (i *Image) LoadAt(at map[*Section]machine.Addr) error {
	type placed struct {
		*Section
		start machine.Addr
	}
	var all []placed
	for s, start := range at {
		if end := start + machine.Addr(s.Size); end < start || s.Size > uint64(i.size) {
			return &Error{i.Name, s.Name, -1, fmt.Errorf("%d bytes at %v exceed the address space", s.Size, start)}
		}
		all = append(all, placed{s, start})
	}
	slices.SortFunc(all, func(a, b placed) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.index, b.index)) })
	next := machine.Addr(0)
	for _, p := range all {
		if p.start < next {
			return &Error{i.Name, p.Name, -1, fmt.Errorf("at %v it overlaps another section, which ends at %v", p.start, next)}
		}
		next = p.start + machine.Addr(p.Size)
	}
	const align = 0x1000
	for _, s := range i.all {
		start, known := at[s]
		switch {
		case known:
			s.Addr, s.elsewhere = start, false
		case s.Alloc:
			next = (next + align) &^ (align - 1)
			s.Addr, s.elsewhere = next, true
			next += machine.Addr(min(s.Size, uint64(i.size)))
		}
	}
	return nil
}

// AllCode returns the code sections that have bytes, loaded or not.
func (i *Image) AllCode() []*Section {
	var code []*Section
	for _, s := range i.all {
		if s.Alloc && s.Exec && s.Bits && s.Size > 0 {
			code = append(code, s)
		}
	}
	return code
}

// InSection returns the section that contains the symbol with a name, and the symbol's offset in it.
func (i *Image) InSection(name string) (s *Section, offset uint64, ok bool) {
	want := append([]byte(name), 0)
	for _, t := range i.symbolTables() {
		for n := range t.named(name, want) {
			sym := t.row(n)
			if sym.section >= 0 && sym.section < len(i.all) && i.format.relative() && string(t.spelling(sym, len(want))) == string(want) {
				return i.all[sym.section], sym.value, true
			}
		}
	}
	return nil, 0, false
}

// Fixed returns the bytes of a section of an ELF image. fixed is true for each byte that no relocation may change: the byte is the same at any load
// address. In an unlinked image a linker may also rewrite the instruction of a relocation, such as a load from the GOT (System V ABI, AMD64
// supplement, B.2); fixed is false for the bytes of such an instruction.
func (s *Section) Fixed() (data []byte, fixed []bool, err error) {
	f, ok := s.image.format.(*elfFormat)
	if !ok {
		return nil, nil, &Error{s.image.Name, s.Name, -1, errors.New("belongs to an image that is not ELF")}
	}
	if !f.relocatable() {
		return f.loaded(s)
	}
	if data, err = s.Data(); err != nil {
		return nil, nil, err
	}
	fixed = make([]bool, len(data))
	for n := range fixed {
		fixed[n] = true
	}
	relocated := false
	for n, table := range f.file.Sections {
		if int(table.Info) != s.index || table.Type != elf.SHT_RELA {
			continue
		}
		if relocated { // [elfFormat.relocate] rejects this too
			return nil, nil, &Error{s.image.Name, table.Name, 0, fmt.Errorf("relocates %s a second time", s.Name)}
		}
		relocated = true
		r, err := f.rela(s.image.all[n])
		if err != nil {
			return nil, nil, err
		}
		for k := range r.len() {
			row := r.row(k)
			before, size := touches(f.file.Machine, row.kind)
			if row.off > uint64(len(data)) {
				return nil, nil, r.fail(row.at, "relocates offset %#x of a section of %#x bytes", row.off, len(data))
			}
			for at := row.off - min(before, row.off); at < min(row.off+size, uint64(len(data))); at++ {
				fixed[at] = false
			}
		}
	}
	return data, fixed, nil
}

// touches returns the number of bytes that a linker may change before the place of a relocation, and the number from the place on.
func touches(of elf.Machine, kind uint32) (before, size uint64) {
	switch of {
	case elf.EM_X86_64:
		switch elf.R_X86_64(kind) {
		case elf.R_X86_64_NONE:
			return 0, 0
		case elf.R_X86_64_64, elf.R_X86_64_PC64, elf.R_X86_64_GOTOFF64, elf.R_X86_64_GOT64, elf.R_X86_64_GOTPCREL64, elf.R_X86_64_GOTPC64, elf.R_X86_64_GOTPLT64, elf.R_X86_64_PLTOFF64,
			elf.R_X86_64_DTPOFF64, elf.R_X86_64_TPOFF64, elf.R_X86_64_SIZE64:
			return 0, 8
		case elf.R_X86_64_GOTPCREL, elf.R_X86_64_GOTPCRELX, elf.R_X86_64_REX_GOTPCRELX, elf.R_X86_64_GOTTPOFF:
			return 3, 4 // includes part of the instruction before the place
		case elf.R_X86_64_TLSGD, elf.R_X86_64_TLSLD, elf.R_X86_64_GOTPC32_TLSDESC, elf.R_X86_64_TLSDESC_CALL:
			return 4, 19 // up to the end of the call that returns the variable's address, also in the large code model
		}
		return 0, 4
	case elf.EM_AARCH64:
		switch elf.R_AARCH64(kind) {
		case elf.R_AARCH64_NONE:
			return 0, 0
		case elf.R_AARCH64_ABS64, elf.R_AARCH64_PREL64:
			return 0, 8
		}
		return 0, 4
	}
	return 8, 8
}
