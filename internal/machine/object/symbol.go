package object

import (
	"bytes"
	"iter"
	"slices"
	"strings"

	"example.com/reframe/internal/machine"
)

// Symbol is one symbol of an image at its loaded address.
type Symbol struct {
	Name string // as the image spells it, mangled
	Addr machine.Addr
	Size uint64 // 0 where the image does not say it
}

// symbolTable keeps a table as it is in the image. libLLVM exports some 40,000 symbols and a lookup needs one of them: walking the raw rows is
// faster than making 40,000 Go values.
type symbolTable struct {
	rows uint64
	row  func(n uint64) rawSymbol // n < rows
	// near yields the rows whose value may be that of a symbol which lies at value or covers it. It is nil if that costs as much as yielding all
	// rows.
	near    func(value uint64) iter.Seq[uint64]
	held    func() int64        // how many bytes of rows are in memory; nil if they are those of the image
	hidden  func(n uint64) bool // a row is an older version of its name; nil for no such rows
	hash    *nameHash           // nil if there is none
	others  []uint64            // nil until they are needed; see unhashed
	names   *Section            // nil if strings holds them from the start
	strings []byte              // all names, read when a name is searched for
	asked   bool                // they were, with success or without
}

// rawSymbol is one row of a symbol table.
type rawSymbol struct {
	name    uint32 // offset in the table's strings; 0 for none
	kind    symbolKind
	binding binding
	code    bool // typed as a function
	label   bool // made by an assembler: at its address another name is better
	hidden  bool // an older version of its name; only lookupAt knows
	section int  // index of the image's section, or undefined, or absolute
	value   uint64
	size    uint64
}

// binding is the visibility of a symbol. The stronger come first.
type binding uint8

const (
	global binding = iota
	weak           // others may replace it
	local          // not visible outside of the image
)

type symbolKind uint8

const (
	codeOrData symbolKind = iota
	sectionSymbol
	placeless // a thread's own variable, a file: no address in the table
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
	b := t.spelling(sym, maxName)
	if end := bytes.IndexByte(b, 0); end >= 0 {
		b = b[:end]
	}
	return string(b)
}

// spelling returns at most n bytes from where the name of a symbol starts.
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

// Lookup returns the symbol that the image defines under that name, including local ones. Of several versions it is the default one, as for
// dlsym(3).
func (i *Image) Lookup(name string) (Symbol, bool) {
	return i.answered(asked{name, anyone}, func() (Symbol, bool) {
		return i.lookup(name, func(rawSymbol) bool { return true })
	})
}

// Exported returns the symbol that the image defines under that name for others
// to use: a global or weak one.
func (i *Image) Exported(name string) (Symbol, bool) {
	return i.answered(asked{name, others}, func() (Symbol, bool) {
		return i.lookup(name, func(s rawSymbol) bool { return s.binding != local })
	})
}

// Strong is Exported of a symbol that no other image's replaces.
func (i *Image) Strong(name string) (Symbol, bool) {
	return i.lookup(name, func(s rawSymbol) bool { return s.binding == global })
}

// Only returns the symbol that the image defines under that name, local ones too, and
// false where several of them have different addresses: each of the objects that were
// linked into an image may keep a name to itself.
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
		return Symbol{}, false // symbols that have no name, and a row of several names
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

// unhashed returns the rows that the hash table is not about, and that define something: symbols that
// others cannot refer to.
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
		// Most tables do not contain the name at all, which one search finds out.
		for n := range t.rows {
			if n == 0 && !bytes.Contains(t.text(), want) || !yield(n) {
				return
			}
		}
	}
}
