package object

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/maphash"
)

// These are masks for the fields of a symbol (mach-o/nlist.h).
const (
	nStab    = 0xe0 // a row of debug information
	nPrivate = 0x10 // private extern: visible to the objects that are linked together
	nKind    = 0x0e // mask of the kind
	nExtern  = 0x01
	nWeakDef = 0x80 // N_WEAK_DEF of n_desc

	nAbsolute = 0x2
	nSection  = 0xe
)

// table reads the symbol table of LC_SYMTAB. The value of a symbol is an address. In an unlinked image, table converts it to an offset in its section, so
// that it stays valid when sections are placed.
func (f *machoFormat) table() (*symbolTable, error) {
	if f.symbols != nil {
		return f.symbols, nil
	}
	cmd := f.symtab
	if cmd.Cmd == 0 {
		return nil, &Error{f.image.Name, "", -1, errors.New("has no symbol table")}
	}
	size := uint64(12)
	if f.wide {
		size = 16
	}
	rows, err := f.part("symbol table", machoExtent{uint64(cmd.Symoff), size * uint64(cmd.Nsyms)}).Data()
	if err != nil {
		return nil, err
	}
	t := &symbolTable{rows: uint64(cmd.Nsyms), names: f.part("symbol names", machoExtent{uint64(cmd.Stroff), uint64(cmd.Strsize)})}
	if f.relocatable() {
		t.text() // needed to recognize labels
	}
	t.row = func(n uint64) rawSymbol {
		b, order := rows[n*size:], binary.LittleEndian
		sym := rawSymbol{name: order.Uint32(b), section: undefined}
		kind := b[4]
		if f.wide {
			sym.value = order.Uint64(b[8:])
		} else {
			sym.value = uint64(order.Uint32(b[8:]))
		}
		switch {
		case kind&nExtern == 0 || kind&nPrivate != 0:
			sym.binding = local
		case b[6]&nWeakDef != 0:
			sym.binding = weak
		}
		if kind&nStab != 0 {
			sym.kind = placeless
			return sym
		}
		switch kind & nKind {
		case nAbsolute:
			sym.section = absolute
		case nSection:
			// Sections count from 1; 0 means none.
			if n := int(b[5]) - 1; n >= 0 && n < len(f.sections) {
				sym.section = n
				if f.relocatable() {
					sym.value -= f.sections[n].addr
					sym.label = sym.binding == local && isLabel(t.strings, sym.name)
				}
			}
		}
		return sym
	}
	f.symbols = t
	return t, nil
}

// isLabel reports whether a name is a label that linkers omit from their output. LLVM's assembler for arm64 starts each section with one ("ltmp0"), at the
// address of the first function.
func isLabel(names []byte, name uint32) bool {
	return uint64(name) < uint64(len(names)) && (names[name] == 'l' || names[name] == 'L')
}

func (f *machoFormat) symbolTables() []*symbolTable {
	if t, err := f.table(); err == nil {
		return []*symbolTable{t}
	}
	return nil
}

// export returns the symbol that the image exports under a name. Names are hashed and not copied: hostile ones may share their bytes, and their copies
// could be larger than the image.
func (f *machoFormat) export(name []byte) (rawSymbol, bool) {
	t, err := f.table()
	if err != nil {
		return rawSymbol{}, false
	}
	names := t.text()
	if f.exported == nil {
		f.exported = map[uint64]rawSymbol{}
		for n := range t.rows {
			if sym := t.row(n); sym.binding != local && sym.kind == codeOrData && sym.section != undefined {
				f.exported[maphash.Bytes(exportSeed, nameAt(names, sym.name))] = sym
			}
		}
	}
	sym, ok := f.exported[maphash.Bytes(exportSeed, name)]
	return sym, ok && bytes.Equal(nameAt(names, sym.name), name)
}

var exportSeed = maphash.MakeSeed()

// nameAt returns the name at an offset of a string table, or nil if the offset is out of range.
func nameAt(names []byte, at uint32) []byte {
	if uint64(at) >= uint64(len(names)) {
		return nil
	}
	name, _, _ := bytes.Cut(names[at:min(uint64(len(names)), uint64(at)+maxName)], []byte{0})
	return name
}
