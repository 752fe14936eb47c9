package object

import (
	"cmp"
	"iter"
	"slices"
	"sort"

	"example.com/reframe/internal/machine"
)

// start is the start of a symbol.
type start struct {
	addr   machine.Addr
	symbol rawSymbol
	table  *symbolTable
}

func (s start) named() Symbol {
	return Symbol{Name: s.table.name(s.symbol), Addr: s.addr, Size: s.symbol.size}
}

// SymbolAt returns the function or object that addr lies in: the symbol whose size covers it, or else, of symbols without a size (assembly), the
// nearest one before it in the same section. Of several that start there it is the first of [Image.SymbolsStarting]. For code that has a descriptor
// it is the descriptor's symbol, with the address of the code ([Image.Entry]).
func (i *Image) SymbolAt(addr machine.Addr) (Symbol, bool) {
	if found, ok, known := i.remembered(addr); known {
		return found, ok
	}
	found, ok := i.symbolAt(addr)
	i.remember(addr, found, ok)
	return found, ok
}

func (i *Image) symbolAt(addr machine.Addr) (Symbol, bool) {
	var best start
	for _, t := range i.symbolTables() {
		for n := range i.near(t, addr) {
			sym := t.row(n)
			at, ok := i.place(sym)
			if !ok || at > addr || sym.size != 0 && uint64(addr-at) >= sym.size {
				continue
			}
			if sym.size == 0 && !i.all[sym.section].Contains(addr) {
				continue
			}
			s := start{at, sym, t}
			if (best.table == nil || covers(s, best) < 0) && !s.label() {
				best = s
			}
		}
	}
	if best.table == nil || best.symbol.size == 0 {
		if s, ok := i.describedAt(addr); ok {
			return s, true
		}
	}
	if best.table == nil {
		return Symbol{}, false
	}
	return best.named(), true
}

// near yields the rows of a table that may cover addr.
func (i *Image) near(t *symbolTable, addr machine.Addr) iter.Seq[uint64] {
	if t.near != nil && !i.format.relative() {
		return t.near(uint64(addr - i.Bias))
	}
	return func(yield func(uint64) bool) {
		for n := range t.rows {
			if !yield(n) {
				return
			}
		}
	}
}

// place returns the address of a symbol that may name code or data. Absolute symbols are numbers, though one may equal an address, especially one
// of [Image.PlaceSections].
func (i *Image) place(sym rawSymbol) (machine.Addr, bool) {
	if sym.name == 0 || sym.kind != codeOrData || sym.section == absolute {
		return 0, false
	}
	return i.address(sym)
}

// covers orders symbols that an address lies in: first those whose size covers it, then the one that starts last.
func covers(a, b start) int {
	return cmp.Or(compareBool(a.symbol.size != 0, b.symbol.size != 0), cmp.Compare(b.addr, a.addr), compareRank(a.symbol, b.symbol))
}

// compareRank orders symbols that start at one address, the best first.
func compareRank(a, b rawSymbol) int {
	return cmp.Or(
		compareBool(a.size != 0, b.size != 0),
		compareBool(!a.label, !b.label),
		cmp.Compare(a.binding, b.binding),
		compareBool(a.code, b.code),
	)
}

// compareBool puts true first.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// SymbolStarting returns the first of [Image.SymbolsStarting]. It sorts all symbols once, so it is meant for lookups of many addresses.
func (i *Image) SymbolStarting(addr machine.Addr) (Symbol, bool) {
	all := i.sorted()
	n := from(all, addr)
	if n == len(all) || all[n].addr != addr {
		return Symbol{}, false
	}
	return all[n].named(), true
}

// SymbolsStarting returns all symbols of code or data that start at addr, no name twice, the best first: those with a size, then global before weak
// before local ones, those typed as functions, and otherwise in the order of the symbol table. A label of the assembler is returned if there is no
// other name. For code that has a descriptor they are the descriptor's. The caller must not change the result.
//
// Names that share their bytes may be larger than the image together. Once the returned names are four times larger, only the best name of an
// address is returned.
func (i *Image) SymbolsStarting(addr machine.Addr) []Symbol {
	if list, ok := i.named[addr]; ok {
		return list
	}
	var list []Symbol
	seen := map[string]bool{}
	all := i.sorted()
	all = all[from(all, addr):]
	if len(all) == 0 || all[0].addr != addr {
		described, n := i.describedFrom(addr)
		all = described[n:]
	}
	for _, s := range all {
		if s.addr != addr || len(list) > 0 && (s.symbol.label || i.namedBytes > 4*i.size) {
			break // labels are the last
		}
		sym := s.named()
		i.namedBytes += int64(len(sym.Name))
		if !seen[sym.Name] {
			seen[sym.Name] = true
			list = append(list, sym)
		}
	}
	if i.named == nil {
		i.named = map[machine.Addr][]Symbol{}
	}
	if len(list) > 0 {
		i.named[addr] = list
	}
	return list
}

// from returns the index of the first symbol that does not start before addr.
func from(all []start, addr machine.Addr) int {
	return sort.Search(len(all), func(n int) bool { return all[n].addr >= addr })
}

// Next returns the address of the first symbol after addr, and false for none.
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
		t.text()
		for n := range t.rows {
			s := start{symbol: t.row(n), table: t}
			var ok bool
			if s.addr, ok = i.place(s.symbol); ok && !s.label() {
				i.starts = append(i.starts, s)
			}
		}
	}
	slices.SortStableFunc(i.starts, func(a, b start) int {
		if a.addr != b.addr {
			return cmp.Compare(a.addr, b.addr)
		}
		return compareRank(a.symbol, b.symbol)
	})
	return i.starts
}

// label reports whether a symbol is a place inside of a function: a label that the assembler kept for the linker (RISC-V and LoongArch, whose
// linkers may shorten code, keep many: ".L0 "), or the mark where code or data begins ("$x", "$d": ELF for the Arm 64-bit Architecture, 5.5.4).
func (s start) label() bool {
	if s.symbol.binding != local || s.symbol.size != 0 {
		return false
	}
	switch string(s.table.spelling(s.symbol, 2)) {
	case ".L", "$x", "$d":
		return true
	}
	return false
}
