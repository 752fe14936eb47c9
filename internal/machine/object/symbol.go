package object

import (
	"bytes"
	"iter"
	"slices"
	"strings"

	"example.com/reframe/internal/machine"
)

// Symbol is a symbol of an image at its loaded address.
type Symbol struct {
	Name string // mangled, as in the image
	Addr machine.Addr
	Size uint64 // 0 if unknown
}

// symbolTable keeps the rows of a table as they are in the image. libLLVM exports some 40,000 symbols and a lookup needs one of them: scanning the
// raw rows is faster than allocating 40,000 Go values.
type symbolTable struct {
	rows uint64
	row  func(n uint64) rawSymbol // returns row n, which must be less than rows
	// near yields the rows whose symbol may lie at value or cover it. It is nil if that is not faster than scanning all rows.
	near    func(value uint64) iter.Seq[uint64]
	held    func() int64        // number of bytes of rows in memory; nil if the rows are not copied
	hidden  func(n uint64) bool // reports a non-default version of a name; nil if there are none
	hash    *nameHash           // the hash table of the names; nil if there is none
	others  []uint64            // numbers of the rows that are not in hash (see unhashed); nil until needed
	names   *Section            // nil if strings is filled from the start
	strings []byte              // all names; filled when a name is searched for
	asked   bool                // strings was read, even if that failed
}

// rawSymbol is a row of a symbol table.
type rawSymbol struct {
	name    uint32 // offset in the table's strings; 0 for none
	kind    symbolKind
	binding binding
	code    bool // the symbol has the type of a function
	label   bool // made by an assembler; another name at its address is preferred
	hidden  bool // a non-default version of its name; set only by lookupAt
	section int  // index of the image's section, or undefined, or absolute
	value   uint64
	size    uint64
}

// binding is the visibility of a symbol, strongest first.
type binding uint8

const (
	global binding = iota
	weak           // other definitions may replace it
	local          // not visible outside of the image
)

type symbolKind uint8

const (
	codeOrData symbolKind = iota
	sectionSymbol
	placeless // no address in the table: a thread-local variable or a file
)

const (
	undefined = -1
	absolute  = -2
)

func (i *Image) symbolTables() []*symbolTable {
	if !i.read {
		i.read, i.tables = true, append(i.format.symbolTables(), i.separateTables()...)
	}
	return i.tables
}

func (t *symbolTable) at(n uint64) (rawSymbol, bool) {
	if n >= t.rows {
		return rawSymbol{}, false
	}
	return t.row(n), true
}

// text returns all names of the table; it reads them on the first call.
func (t *symbolTable) text() []byte {
	if !t.asked && t.names != nil {
		t.asked = true
		t.strings, _ = t.names.Data()
	}
	return t.strings
}

// maxName is the length at which names are cut, because they are hostile and printed.
const maxName = 4096

func (t *symbolTable) name(sym rawSymbol) string {
	b := t.spelling(sym, maxName)
	if end := bytes.IndexByte(b, 0); end >= 0 {
		b = b[:end]
	}
	return string(b)
}

// spelling returns at most n bytes from the start of a symbol's name; they may extend past its end.
func (t *symbolTable) spelling(sym rawSymbol, n int) []byte {
	if t.strings == nil && t.names != nil {
		b := make([]byte, n)
		got, _ := t.names.ReadAt(b, int64(sym.name))
		return b[:got]
	}
	if uint64(sym.name) >= uint64(len(t.strings)) {
		return nil
	}
	b := t.strings[sym.name:]
	return b[:min(len(b), n)]
}

// Lookup returns the symbol that the image defines under a name, including local ones. Of several versions it returns the default one, as dlsym(3) does.
func (i *Image) Lookup(name string) (Symbol, bool) {
	return i.answered(asked{name, anyone}, func() (Symbol, bool) {
		return i.lookup(name, func(rawSymbol) bool { return true })
	})
}

// Exported returns the global or weak symbol that the image defines under a name.
func (i *Image) Exported(name string) (Symbol, bool) {
	return i.answered(asked{name, others}, func() (Symbol, bool) {
		return i.lookup(name, func(s rawSymbol) bool { return s.binding != local })
	})
}

// Strong returns the global symbol that the image defines under a name; no other image can replace it.
func (i *Image) Strong(name string) (Symbol, bool) {
	return i.lookup(name, func(s rawSymbol) bool { return s.binding == global })
}

// Only returns the symbol that the image defines under a name, including local ones. It returns false if several symbols with that name have different
// addresses: each object linked into an image may have a local symbol with the name.
func (i *Image) Only(name string) (Symbol, bool) {
	return i.answered(asked{name, alone}, func() (Symbol, bool) {
		first, ok := i.Lookup(name)
		if !ok {
			return Symbol{}, false
		}
		_, current := i.lookupAt(name, func(s rawSymbol, at machine.Addr) bool { return at == first.Addr && !s.hidden })
		_, another := i.lookupAt(name, func(s rawSymbol, at machine.Addr) bool { return at != first.Addr && !(s.hidden && current) })
		return first, !another
	})
}

func (i *Image) lookup(name string, accept func(rawSymbol) bool) (Symbol, bool) {
	return i.lookupAt(name, func(s rawSymbol, _ machine.Addr) bool { return accept(s) })
}

func (i *Image) lookupAt(name string, accept func(rawSymbol, machine.Addr) bool) (Symbol, bool) {
	if name == "" || strings.IndexByte(name, 0) >= 0 {
		return Symbol{}, false // unnamed symbols, and a string that spans several names
	}
	want := append([]byte(name), 0)
	var older Symbol
	found := false
	for _, t := range i.symbolTables() {
		for n := range t.named(name, want) {
			sym := t.row(n)
			addr, ok := i.address(sym)
			if !ok || sym.kind == placeless || !bytes.Equal(t.spelling(sym, len(want)), want) {
				continue
			}
			if sym.hidden = t.hidden != nil && t.hidden(n); !accept(sym, addr) {
				continue
			}
			it := Symbol{Name: name, Addr: addr, Size: sym.size}
			if !sym.hidden {
				return it, true
			}
			if !found {
				older, found = it, true
			}
		}
	}
	return older, found
}

// unhashed returns the rows that define a symbol but are not in the hash table: symbols that other images cannot refer to.
func (t *symbolTable) unhashed() []uint64 {
	if t.others == nil {
		t.others = []uint64{}
		for n := range t.hash.first {
			if t.row(n).section != undefined {
				t.others = append(t.others, n)
			}
		}
	}
	return slices.Clip(t.others)
}

// named yields the rows that may have a name; want is the name with a zero byte appended.
func (t *symbolTable) named(name string, want []byte) iter.Seq[uint64] {
	if t.hash != nil {
		if rows, sound := t.hash.find(name); sound {
			return slices.Values(append(t.unhashed(), rows...))
		}
	}
	return func(yield func(uint64) bool) {
		// Most tables do not contain the name at all; one search of the strings shows that.
		for n := range t.rows {
			if n == 0 && !bytes.Contains(t.text(), want) || !yield(n) {
				return
			}
		}
	}
}
