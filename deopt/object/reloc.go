package object

import (
	"debug/elf"
	"encoding/binary"
	"fmt"

	"reframe/deopt/machine"
)

// Relocated returns the bytes of the section with its relocations applied.
//
// For a linked image these are the bytes as they stand. For an unlinked one
// the relocations of the section are applied as System V ABI, AMD64 supplement,
// table 4.10 says, with the addresses in the image's own section headers:
// address = sh_addr[st_shndx] + st_value + addend. That equals what
// RuntimeDyld wrote into memory, byte for byte, and with JITLink, which keeps
// no section in memory, it is the only way.
//
// A relocation against a symbol that the object does not define is left as it
// is and counted in unresolved: the object does not say where that is.
func (s *Section) Relocated() (data []byte, unresolved int, err error) {
	data, err = s.Data()
	if err != nil || !s.image.Relocatable() {
		return data, 0, err
	}
	index, applied := -1, false
	for n, other := range s.image.all {
		if other == s {
			index = n
		}
	}
	for _, r := range s.image.all {
		if r.section.Type == elf.SHT_REL && int(r.section.Info) == index {
			return nil, 0, &Error{s.image.Name, r.Name, 0, fmt.Errorf("relocations without addends (SHT_REL) do not occur on %v", s.image.file.Machine)}
		}
		if r.section.Type != elf.SHT_RELA || int(r.section.Info) != index {
			continue
		}
		// LLVM and the assemblers write one. A hostile object has one for each section
		// header that it has, all of them with the same rows.
		if applied {
			return nil, 0, &Error{s.image.Name, r.Name, 0, fmt.Errorf("relocates %s a second time", s.Name)}
		}
		applied = true
		if unresolved, err = s.apply(data, r); err != nil {
			return nil, 0, err
		}
	}
	return data, unresolved, nil
}

// apply applies one SHT_RELA section to data, the bytes of s.
func (s *Section) apply(data []byte, rela *Section) (unresolved int, err error) {
	img := s.image
	if _, err := img.Arch(); err != nil {
		return 0, err
	}
	if int(rela.section.Link) >= len(img.all) {
		return 0, &Error{img.Name, rela.Name, 0, fmt.Errorf("names section %d of %d as its symbol table", rela.section.Link, len(img.all))}
	}
	symbols, err := img.table(img.all[rela.section.Link])
	if err != nil {
		return 0, err
	}
	rows, err := rela.Data()
	if err != nil {
		return 0, err
	}
	order := img.file.ByteOrder
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
			return 0, fail("symbol %d is past the end of the symbol table", info>>32)
		}
		if kind == elf.R_X86_64_NONE {
			continue
		}
		size, relative, known := relocShape(kind)
		if !known {
			return 0, fail("relocation %v is not known here", kind)
		}
		if off > uint64(len(data)) || uint64(len(data))-off < uint64(size) {
			return 0, fail("relocates offset %#x of a section of %#x bytes", off, len(data))
		}
		addr, defined := img.address(sym)
		if !defined {
			unresolved++
			continue
		}
		value := uint64(addr) + addend
		if relative {
			value -= uint64(s.Loaded()) + off
		}
		put(data[off:], size, value, order)
	}
	return unresolved, nil
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

func put(p []byte, size int, v uint64, order binary.ByteOrder) {
	if size == 8 {
		order.PutUint64(p, v)
	} else {
		order.PutUint32(p, uint32(v))
	}
}

// address returns where a symbol is loaded, and false where the image does not define it.
func (i *Image) address(sym rawSymbol) (machine.Addr, bool) {
	switch {
	case sym.shndx == elf.SHN_UNDEF:
		return 0, false
	case sym.shndx == elf.SHN_ABS:
		return machine.Addr(sym.value), true
	case sym.shndx >= elf.SHN_LORESERVE || int(sym.shndx) >= len(i.all):
		return 0, false
	case i.Relocatable():
		return i.all[sym.shndx].Addr + machine.Addr(sym.value), true
	}
	return machine.Addr(sym.value) + i.Bias, true
}
