package object

import (
	"bytes"
	"debug/elf"
	"fmt"
	"strings"

	"reframe/deopt/machine"
)

// Symbol is one symbol of an image at its loaded address.
type Symbol struct {
	Name string // as the image spells it, mangled
	Addr machine.Addr
	Size uint64
}

// symbolTable keeps a table as it stands in the image. libLLVM exports some
// 40,000 symbols and a lookup wants one of them: walking the raw rows is
// quicker than making 40,000 Go values.
type symbolTable struct {
	rows    []byte
	names   *Section
	image   *Image
	strings []byte // all names, read when a name is searched for
}

type rawSymbol struct {
	name  uint32
	kind  elf.SymType
	bind  elf.SymBind
	shndx elf.SectionIndex
	value uint64
	size  uint64
}

const symbolRow = elf.Sym64Size

// table reads one symbol table section.
func (i *Image) table(s *Section) (*symbolTable, error) {
	if s.section.Type != elf.SHT_SYMTAB && s.section.Type != elf.SHT_DYNSYM || i.file.Class != elf.ELFCLASS64 {
		return nil, &Error{i.Name, s.Name, 0, fmt.Errorf("is no symbol table of a 64-bit image")}
	}
	if int(s.section.Link) >= len(i.all) {
		return nil, &Error{i.Name, s.Name, 0, fmt.Errorf("names section %d of %d as its strings", s.section.Link, len(i.all))}
	}
	rows, err := s.Data()
	if err != nil {
		return nil, err
	}
	return &symbolTable{rows: rows, names: i.all[s.section.Link], image: i}, nil
}

// symbolTables returns .symtab and .dynsym, those of them that can be read. An image
// has at most one of each (System V ABI, chapter 4, "Section Types"); a hostile one
// has as many as it has section headers, each as large as the whole image.
func (i *Image) symbolTables() []*symbolTable {
	if !i.read {
		i.read = true
		seen := map[elf.SectionType]bool{}
		for _, s := range i.all {
			kind := s.section.Type
			if (kind == elf.SHT_SYMTAB || kind == elf.SHT_DYNSYM) && !seen[kind] {
				seen[kind] = true
				if t, err := i.table(s); err == nil {
					i.tables = append(i.tables, t)
				}
			}
		}
	}
	return i.tables
}

func (t *symbolTable) len() uint64 { return uint64(len(t.rows) / symbolRow) }

func (t *symbolTable) at(n uint64) (rawSymbol, bool) {
	if n >= t.len() {
		return rawSymbol{}, false
	}
	b, order := t.rows[n*symbolRow:], t.image.file.ByteOrder
	return rawSymbol{
		name: order.Uint32(b), kind: elf.SymType(b[4] & 15), bind: elf.SymBind(b[4] >> 4), shndx: elf.SectionIndex(order.Uint16(b[6:])),
		value: order.Uint64(b[8:]), size: order.Uint64(b[16:]),
	}, true
}

// A name longer than this is cut: it is shown to people, and hostile.
const maxName = 4096

func (t *symbolTable) name(sym rawSymbol) string {
	var b [maxName]byte
	n, _ := t.names.ReadAt(b[:], int64(sym.name))
	if end := bytes.IndexByte(b[:n], 0); end >= 0 {
		n = end
	}
	return string(b[:n])
}

// SymbolAt returns the function or object that addr lies in: the symbol whose
// size covers it, or else, of symbols without a size (assembly), the nearest
// one before it in the same section.
func (i *Image) SymbolAt(addr machine.Addr) (Symbol, bool) {
	var best rawSymbol
	var bestTable *symbolTable
	var bestAddr machine.Addr
	for _, t := range i.symbolTables() {
		for n := range t.len() {
			sym, _ := t.at(n)
			if sym.name == 0 || sym.kind == elf.STT_SECTION || sym.kind == elf.STT_FILE || sym.kind == elf.STT_TLS {
				continue
			}
			start, ok := i.address(sym)
			if !ok || start > addr || sym.size != 0 && uint64(addr-start) >= sym.size {
				continue
			}
			if sym.size == 0 && (int(sym.shndx) >= len(i.all) || !i.all[sym.shndx].Contains(addr)) {
				continue
			}
			if bestTable == nil || better(sym, start, best, bestAddr) {
				best, bestTable, bestAddr = sym, t, start
			}
		}
	}
	if bestTable == nil {
		return Symbol{}, false
	}
	return Symbol{Name: bestTable.name(best), Addr: bestAddr, Size: best.size}, true
}

// better prefers a symbol whose size is known, then the one that starts later.
func better(a rawSymbol, aAddr machine.Addr, b rawSymbol, bAddr machine.Addr) bool {
	if (a.size != 0) != (b.size != 0) {
		return a.size != 0
	}
	return aAddr > bAddr
}

// Lookup returns the symbol that the image defines under that name, local ones too.
func (i *Image) Lookup(name string) (Symbol, bool) {
	return i.lookup(name, func(rawSymbol) bool { return true })
}

// Exported returns the symbol that the image defines under that name for others
// to use: a global or weak one.
func (i *Image) Exported(name string) (Symbol, bool) {
	return i.lookup(name, func(s rawSymbol) bool { return s.bind != elf.STB_LOCAL })
}

// Only returns the symbol that the image defines under that name, local ones too, and
// false where several of them have different addresses: each of the objects that were
// linked into an image may keep a name to itself.
func (i *Image) Only(name string) (Symbol, bool) {
	first, ok := i.Lookup(name)
	if !ok {
		return Symbol{}, false
	}
	_, another := i.lookupAt(name, func(_ rawSymbol, at machine.Addr) bool { return at != first.Addr })
	return first, !another
}

func (i *Image) lookup(name string, accept func(rawSymbol) bool) (Symbol, bool) {
	return i.lookupAt(name, func(s rawSymbol, _ machine.Addr) bool { return accept(s) })
}

func (i *Image) lookupAt(name string, accept func(rawSymbol, machine.Addr) bool) (Symbol, bool) {
	if name == "" || strings.IndexByte(name, 0) >= 0 {
		return Symbol{}, false // symbols that have no name, and a row of several names
	}
	want := append([]byte(name), 0)
	for _, t := range i.symbolTables() {
		if t.strings == nil {
			text, err := t.names.Data()
			if err != nil {
				continue
			}
			t.strings = text
		}
		// Most tables do not hold the name at all, which one search tells.
		if !bytes.Contains(t.strings, want) {
			continue
		}
		for n := range t.len() {
			sym, _ := t.at(n)
			if uint64(sym.name) >= uint64(len(t.strings)) || !bytes.HasPrefix(t.strings[sym.name:], want) {
				continue
			}
			// A thread's own variable has no address that a table could tell.
			if addr, ok := i.address(sym); ok && sym.kind != elf.STT_TLS && accept(sym, addr) {
				return Symbol{Name: name, Addr: addr, Size: sym.size}, true
			}
		}
	}
	return Symbol{}, false
}
