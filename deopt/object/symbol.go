package object

import (
	"bytes"
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
	binding binding
	code    bool // typed as a function
	label   bool // made by an assembler: at its address another name is better
	section int  // index of the image's section, or undefined, or absolute
	value   uint64
	size    uint64
}

// binding says who may use a symbol. The stronger come first.
type binding uint8

const (
	global binding = iota
	weak           // others may replace it
	local          // nobody outside of the image sees it
)

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

// Lookup returns the symbol that the image defines under that name, local ones too.
func (i *Image) Lookup(name string) (Symbol, bool) {
	return i.lookup(name, func(rawSymbol) bool { return true })
}

// Exported returns the symbol that the image defines under that name for others
// to use: a global or weak one.
func (i *Image) Exported(name string) (Symbol, bool) {
	return i.lookup(name, func(s rawSymbol) bool { return s.binding != local })
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
