package object

import (
	"bytes"
	"cmp"
	"slices"
	"sort"
	"strings"

	"reframe/deopt/machine"
)

// Symbol is one symbol of an image at its loaded address.
type Symbol struct {
	Name string // as the image spells it, mangled
	Addr machine.Addr
	Size uint64 // 0 where the image does not say it
}

// symbolTable keeps a table as it stands in the image. libLLVM exports some
// 40,000 symbols and a lookup wants one of them: walking the raw rows is
// quicker than making 40,000 Go values.
type symbolTable struct {
	rows    uint64
	row     func(n uint64) rawSymbol // n < rows
	names   *Section                 // nil where strings holds them from the start
	strings []byte                   // all names, read when a name is searched for
	asked   bool                     // they were, with success or without
}

// rawSymbol is one row of a symbol table.
type rawSymbol struct {
	name    uint32 // offset in the table's strings; 0 for none
	kind    symbolKind
	local   bool // nobody outside of the image sees it
	label   bool // made by an assembler: at its address another name is better
	section int  // index of the image's section, or undefined, or absolute
	value   uint64
	size    uint64
}

type symbolKind uint8

const (
	codeOrData symbolKind = iota
	sectionSymbol
	placeless // a thread's own variable, a file: no address that the table could tell
)

const (
	undefined = -1
	absolute  = -2
)

func (i *Image) symbolTables() []*symbolTable {
	if !i.read {
		i.read, i.tables = true, i.format.symbolTables()
	}
	return i.tables
}

func (t *symbolTable) at(n uint64) (rawSymbol, bool) {
	if n >= t.rows {
		return rawSymbol{}, false
	}
	return t.row(n), true
}

// text returns all names, read at once.
func (t *symbolTable) text() []byte {
	if !t.asked && t.names != nil {
		t.asked = true
		t.strings, _ = t.names.Data()
	}
	return t.strings
}

// A name longer than this is cut: it is shown to people, and hostile.
const maxName = 4096

func (t *symbolTable) name(sym rawSymbol) string {
	var b []byte
	if t.strings == nil && t.names != nil {
		b = make([]byte, maxName)
		n, _ := t.names.ReadAt(b, int64(sym.name))
		b = b[:n]
	} else if uint64(sym.name) < uint64(len(t.strings)) {
		b = t.strings[sym.name:]
		b = b[:min(len(b), maxName)]
	}
	if end := bytes.IndexByte(b, 0); end >= 0 {
		b = b[:end]
	}
	return string(b)
}

// SymbolAt returns the function or object that addr lies in: the symbol whose
// size covers it, or else, of symbols without a size (assembly), the nearest
// one before it in the same section.
func (i *Image) SymbolAt(addr machine.Addr) (Symbol, bool) {
	var best rawSymbol
	var bestTable *symbolTable
	var bestAddr machine.Addr
	for _, t := range i.symbolTables() {
		for n := range t.rows {
			sym := t.row(n)
			start, ok := i.place(sym)
			if !ok || start > addr || sym.size != 0 && uint64(addr-start) >= sym.size {
				continue
			}
			if sym.size == 0 && (sym.section < 0 || !i.all[sym.section].Contains(addr)) {
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

// place returns where a symbol is that may name code or data.
func (i *Image) place(sym rawSymbol) (machine.Addr, bool) {
	if sym.name == 0 || sym.kind != codeOrData {
		return 0, false
	}
	return i.address(sym)
}

// better prefers a symbol whose size is known, then the one that starts later, then
// one that is no label of an assembler.
func better(a rawSymbol, aAddr machine.Addr, b rawSymbol, bAddr machine.Addr) bool {
	if (a.size != 0) != (b.size != 0) {
		return a.size != 0
	}
	if aAddr != bAddr {
		return aAddr > bAddr
	}
	return !a.label && b.label
}

// start is where a symbol starts.
type start struct {
	addr   machine.Addr
	symbol rawSymbol
	table  *symbolTable
}

// SymbolStarting returns the symbol that starts at addr: of several the one that
// [Image.SymbolAt] would return. It sorts all symbols once, so it is for who asks
// about many addresses.
func (i *Image) SymbolStarting(addr machine.Addr) (Symbol, bool) {
	all := i.sorted()
	n := sort.Search(len(all), func(n int) bool { return all[n].addr >= addr })
	if n == len(all) || all[n].addr != addr {
		return Symbol{}, false
	}
	s := all[n]
	s.table.text()
	return Symbol{Name: s.table.name(s.symbol), Addr: addr, Size: s.symbol.size}, true
}

// Next returns the address of the first symbol behind addr, and false where there is none.
func (i *Image) Next(addr machine.Addr) (machine.Addr, bool) {
	all := i.sorted()
	n := sort.Search(len(all), func(n int) bool { return all[n].addr > addr })
	if n == len(all) {
		return 0, false
	}
	return all[n].addr, true
}

// sorted returns the symbols by address, of those at one address the best first.
func (i *Image) sorted() []start {
	if i.starts != nil {
		return i.starts
	}
	i.starts = []start{}
	for _, t := range i.symbolTables() {
		text := t.text()
		for n := range t.rows {
			sym := t.row(n)
			if addr, ok := i.place(sym); ok && !label(sym, text) {
				i.starts = append(i.starts, start{addr, sym, t})
			}
		}
	}
	slices.SortStableFunc(i.starts, func(a, b start) int {
		switch {
		case a.addr != b.addr:
			return cmp.Compare(a.addr, b.addr)
		case better(a.symbol, 0, b.symbol, 0):
			return -1
		case better(b.symbol, 0, a.symbol, 0):
			return 1
		}
		return 0
	})
	return i.starts
}

// label says that a symbol is a place inside of a function: a label that the assembler kept for the
// linker's sake (RISC-V and LoongArch, whose linkers may shorten code, keep many: ".L0 "), or the mark
// where code or data begins ("$x", "$d": ELF for the Arm 64-bit Architecture, 5.5.4).
func label(sym rawSymbol, text []byte) bool {
	if !sym.local || sym.size != 0 || uint64(sym.name)+2 > uint64(len(text)) {
		return false
	}
	switch string(text[sym.name : sym.name+2]) {
	case ".L", "$x", "$d":
		return true
	}
	return false
}

// Lookup returns the symbol that the image defines under that name, local ones too.
func (i *Image) Lookup(name string) (Symbol, bool) {
	return i.lookup(name, func(rawSymbol) bool { return true })
}

// Exported returns the symbol that the image defines under that name for others
// to use: a global or weak one.
func (i *Image) Exported(name string) (Symbol, bool) {
	return i.lookup(name, func(s rawSymbol) bool { return !s.local })
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
		text := t.text()
		// Most tables do not hold the name at all, which one search tells.
		if !bytes.Contains(text, want) {
			continue
		}
		for n := range t.rows {
			sym := t.row(n)
			if uint64(sym.name) >= uint64(len(text)) || !bytes.HasPrefix(text[sym.name:], want) {
				continue
			}
			if addr, ok := i.address(sym); ok && sym.kind != placeless && accept(sym, addr) {
				return Symbol{Name: name, Addr: addr, Size: sym.size}, true
			}
		}
	}
	return Symbol{}, false
}
