package object

import (
	"debug/elf"
	"errors"
	"fmt"
)

// table reads a whole symbol table section.
func (f *elfFormat) table(s *Section) (*symbolTable, error) {
	t, rows, err := f.openTable(s)
	if err == nil {
		err = rows.load()
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// openTable returns a symbol table and its rows, which are read on demand. If the rows cannot be read, the table has no definitions.
func (f *elfFormat) openTable(s *Section) (*symbolTable, *elfRows, error) {
	img, header := f.image, f.file.Sections[s.index]
	if header.Type != elf.SHT_SYMTAB && header.Type != elf.SHT_DYNSYM {
		return nil, nil, &Error{img.Name, s.Name, 0, errors.New("is not a symbol table")}
	}
	if uint64(header.Link) >= uint64(len(img.all)) {
		return nil, nil, &Error{img.Name, s.Name, 0, fmt.Errorf("has section %d of %d as its strings", header.Link, len(img.all))}
	}
	if err := s.Readable(); err != nil {
		return nil, nil, err
	}
	rows := &elfRows{section: s, narrow: f.file.Class == elf.ELFCLASS32, order: f.file.ByteOrder, size: elf.Sym64Size}
	if rows.narrow {
		rows.size = elf.Sym32Size
	}
	return &symbolTable{names: img.all[header.Link], rows: s.Size / rows.size, row: rows.row, near: rows.near, held: rows.held}, rows, nil
}

func elfSymbol(name uint32, info byte, section uint16, value, size uint64) rawSymbol {
	t := elf.ST_TYPE(info)
	return rawSymbol{
		name: name, kind: elfKind(t), code: t == elf.STT_FUNC || t == elf.STT_GNU_IFUNC, binding: elfBinding(elf.ST_BIND(info)),
		section: elfSection(elf.SectionIndex(section)), value: value, size: size,
	}
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

func elfBinding(b elf.SymBind) binding {
	switch b {
	case elf.STB_LOCAL:
		return local
	case elf.STB_WEAK:
		return weak
	}
	return global
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

// symbolTables returns .symtab and .dynsym, if they can be read. An image has at most one of each (System V ABI, chapter 4, "Section Types"). A hostile one
// may have one for each section header, each as large as the whole image, so only the first of each type counts.
func (f *elfFormat) symbolTables() []*symbolTable {
	var tables []*symbolTable
	seen := map[elf.SectionType]bool{}
	for n, s := range f.file.Sections {
		if (s.Type == elf.SHT_SYMTAB || s.Type == elf.SHT_DYNSYM) && !seen[s.Type] {
			seen[s.Type] = true
			if t, _, err := f.openTable(f.image.all[n]); err == nil {
				t.hash, t.hidden = f.nameHash(n), f.hidden(n)
				tables = append(tables, t)
			}
		}
	}
	return tables
}
