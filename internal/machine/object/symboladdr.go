package object

import (
	"cmp"
	"iter"
	"slices"
	"sort"

	"example.com/reframe/internal/machine"
)

// start is a symbol with its address.
type start struct {
	addr   machine.Addr
	symbol rawSymbol
	table  *symbolTable
}

func (s start) named() Symbol {
	return Symbol{Name: s.table.name(s.symbol), Addr: s.addr, Size: s.symbol.size}
}

// SymbolAt returns the function or object that contains addr: the symbol whose size covers it. Otherwise it returns the nearest symbol before addr in the
// same section that has no size, as in assembly. Of several symbols at one address it returns the first of [Image.SymbolsStarting]. For code with a
// descriptor it returns the descriptor's symbol with the address of the code ([Image.Entry]). In a stripped Go program it returns the Go function.
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
	if best.table == nil || best.symbol.size == 0 {
		if s, ok := i.goFunctionAt(addr); ok {
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

// place returns the address of a symbol that may name code or data. It rejects absolute symbols, because their values are numbers that may equal an
// address, especially one of [Image.PlaceSections].
func (i *Image) place(sym rawSymbol) (machine.Addr, bool) {
	if sym.name == 0 || sym.kind != codeOrData || sym.section == absolute {
		return 0, false
	}
	return i.address(sym)
}

// covers orders symbols that may contain an address: first those with a size, then those that start last.
func covers(a, b start) int {
	return cmp.Or(compareBool(a.symbol.size != 0, b.symbol.size != 0), cmp.Compare(b.addr, a.addr), compareRank(a.symbol, b.symbol))
}

// compareRank orders symbols with the same address, best first.
func compareRank(a, b rawSymbol) int {
	return cmp.Or(
		compareBool(a.size != 0, b.size != 0),
		compareBool(!a.label, !b.label),
		cmp.Compare(a.binding, b.binding),
		compareBool(a.code, b.code),
	)
}

// compareBool orders true before false.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// SymbolStarting returns the first of [Image.SymbolsStarting]. It sorts all symbols once, so use it to look up many addresses.
func (i *Image) SymbolStarting(addr machine.Addr) (Symbol, bool) {
	all := i.sorted()
	n := from(all, addr)
	if n == len(all) || all[n].addr != addr {
		return Symbol{}, false
	}
	return all[n].named(), true
}

// SymbolsStarting returns all symbols of code or data with the address addr, each name once, best first. Symbols with a size come first, then global before
// weak before local ones, then functions, then the order of the symbol table. It returns assembler labels only if there is no other name. For code with a
// descriptor it returns the descriptor's symbols. The caller must not change the result.
//
// Hostile names may share their bytes, so that copies of all names would be larger than the image. Once the returned names take four times its size, only
// the best name of an address is returned.
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
			break // labels come last, and there are better names
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

// sorted returns the symbols in the order of their addresses; those with the same address are ordered best first.
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

// label reports whether a symbol marks a place inside a function. It may be a label that the assembler kept for a linker that shortens code (RISC-V and
// LoongArch: ".L0 "), or a mapping symbol ("$x", "$d": ELF for the Arm 64-bit Architecture, 5.5.4).
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
