package object

import (
	"debug/elf"
	"fmt"
)

// table reads one symbol table section.
func (f *elfFormat) table(s *Section) (*symbolTable, error) {
	img, header := f.image, f.file.Sections[s.index]
	if header.Type != elf.SHT_SYMTAB && header.Type != elf.SHT_DYNSYM || f.file.Class != elf.ELFCLASS64 {
		return nil, &Error{img.Name, s.Name, 0, fmt.Errorf("is no symbol table of a 64-bit image")}
	}
	if int(header.Link) >= len(img.all) {
		return nil, &Error{img.Name, s.Name, 0, fmt.Errorf("names section %d of %d as its strings", header.Link, len(img.all))}
	}
	rows, err := s.Data()
	if err != nil {
		return nil, err
	}
	const size = elf.Sym64Size
	order := f.file.ByteOrder
	return &symbolTable{names: img.all[header.Link], rows: uint64(len(rows) / size), row: func(n uint64) rawSymbol {
		b := rows[n*size:]
		return rawSymbol{
			name: order.Uint32(b), kind: elfKind(elf.SymType(b[4] & 15)), local: elf.SymBind(b[4]>>4) == elf.STB_LOCAL,
			section: elfSection(elf.SectionIndex(order.Uint16(b[6:]))), value: order.Uint64(b[8:]), size: order.Uint64(b[16:]),
		}
	}}, nil
}

func elfKind(t elf.SymType) symbolKind {
	switch t {
	case elf.STT_SECTION:
		return sectionSymbol
	case elf.STT_FILE, elf.STT_TLS:
		return placeless
	}
	return codeOrData
}

func elfSection(n elf.SectionIndex) int {
	switch {
	case n == elf.SHN_UNDEF:
		return undefined
	case n == elf.SHN_ABS:
		return absolute
	case n >= elf.SHN_LORESERVE:
		return undefined
	}
	return int(n)
}

// symbolTables returns .symtab and .dynsym, those of them that can be read. An image
// has at most one of each (System V ABI, chapter 4, "Section Types"); a hostile one
// has as many as it has section headers, each as large as the whole image.
func (f *elfFormat) symbolTables() []*symbolTable {
	var tables []*symbolTable
	seen := map[elf.SectionType]bool{}
	for n, s := range f.file.Sections {
		if (s.Type == elf.SHT_SYMTAB || s.Type == elf.SHT_DYNSYM) && !seen[s.Type] {
			seen[s.Type] = true
			if t, err := f.table(f.image.all[n]); err == nil {
				tables = append(tables, t)
			}
		}
	}
	return tables
}
