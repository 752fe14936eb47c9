package object

import (
	"cmp"
	"debug/elf"
	"slices"

	"example.com/reframe/internal/machine"
)

// Entry returns the address of the code of the function whose address is addr, and false if the image does not hold it.
//
// The two are equal except on big-endian 64-bit PowerPC. There the address of a function, also in stack maps, is that of its descriptor in .opd. The
// descriptor holds the address of its code, the address of its data, and an environment (64-bit PowerPC ELF ABI 1.9, 3.2.2). A function's symbol has the
// address of the descriptor and the size of the code.
func (i *Image) Entry(addr machine.Addr) (machine.Addr, bool) {
	f, ok := i.format.(*elfFormat)
	if !ok || f.file.Machine != elf.EM_PPC64 {
		return addr, true
	}
	s := i.Section(".opd")
	if s == nil || !s.Contains(addr) {
		return addr, true
	}
	// PlaceSections may have moved the sections in the meantime.
	if f.opd == nil || f.opdAddr != s.Addr {
		data, done, err := s.Relocated()
		if err != nil {
			return 0, false
		}
		f.opd, f.opdAddr, f.unknown = data, s.Addr, map[uint64]bool{}
		for _, r := range done {
			if !r.Defined {
				f.unknown[r.Offset] = true
			}
		}
	}
	off := uint64(addr - s.Loaded())
	if f.unknown[off] || off+8 > uint64(len(f.opd)) {
		return 0, false
	}
	return machine.Addr(f.file.ByteOrder.Uint64(f.opd[off:])) + i.Bias, true
}

// describedFrom returns all functions with a descriptor in the order of their code, and the index of the first whose code starts at addr or later.
// Their code has no symbols, so they have the names of their descriptors. Functions with the same code are in the order of [Image.SymbolsStarting].
func (i *Image) describedFrom(addr machine.Addr) (all []start, n int) {
	opd := i.Section(".opd")
	if f, ok := i.format.(*elfFormat); !ok || f.file.Machine != elf.EM_PPC64 || opd == nil {
		return nil, 0
	}
	if i.described == nil {
		i.described = []start{}
		for _, s := range i.sorted() {
			if entry, ok := i.Entry(s.addr); ok && opd.Contains(s.addr) && s.symbol.size > 0 {
				s.addr = entry
				i.described = append(i.described, s)
			}
		}
		slices.SortStableFunc(i.described, func(a, b start) int { return cmp.Compare(a.addr, b.addr) })
	}
	n, _ = slices.BinarySearchFunc(i.described, addr, func(d start, addr machine.Addr) int { return cmp.Compare(d.addr, addr) })
	return i.described, n
}

// describedAt returns the function with a descriptor whose code contains addr.
func (i *Image) describedAt(addr machine.Addr) (Symbol, bool) {
	all, n := i.describedFrom(addr)
	if n == len(all) || all[n].addr != addr { // no function starts at addr: take the last one before it, by its best name
		if n == 0 {
			return Symbol{}, false
		}
		all, n = i.describedFrom(all[n-1].addr)
	}
	if s := all[n]; uint64(addr-s.addr) < s.symbol.size {
		return s.named(), true
	}
	return Symbol{}, false
}
