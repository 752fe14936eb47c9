package object

import (
	"debug/elf"
	"encoding/binary"
	"slices"

	"example.com/reframe/internal/machine"
)

// linkedPlace is a reference from code or data of a registered image to a symbol whose address the image does not hold.
type linkedPlace struct {
	at     machine.Addr
	kind   elf.R_X86_64
	symbol rawSymbol
	addend uint64
}

// Linked returns the address that a JIT gave to a symbol of a registered image, if the image does not hold the address. The image lacks the addresses
// of four kinds of symbols: those of other images or of the JIT, common symbols, symbols in a section whose header has no address, and weak symbols,
// which another image may replace. Linked reads the address from mem, where the JIT applied the image's relocations; for a function it may be the
// address of a stub. It returns false if no relocation refers to the symbol, or if the relocations disagree.
func (i *Image) Linked(name string, mem machine.Memory) (machine.Addr, bool) {
	f, ok := i.format.(*elfFormat)
	if !ok || !i.Registered || !f.relocatable() || f.file.Machine != elf.EM_X86_64 || f.file.Class != elf.ELFCLASS64 {
		return 0, false
	}
	want, ok := i.unplaced(name)
	if !ok {
		return 0, false
	}
	for _, far := range [...]bool{false, true} { // prefer a stored address: a call may go to a stub
		found := map[machine.Addr]bool{}
		for _, p := range f.linkedPlaces() {
			if far != (p.kind == elf.R_X86_64_PLT32) {
				continue
			}
			if !p.symbol.tells(want) {
				continue
			}
			if to, ok := p.read(mem); ok {
				found[to+machine.Addr(want.value-p.symbol.value)] = true
			}
		}
		if len(found) > 1 {
			return 0, false
		}
		for at := range found {
			return at, true
		}
	}
	return 0, false
}

// unplaced returns the symbol with a name if the JIT decides its address. The value of the result is an offset in its section, or 0 without a
// section.
func (i *Image) unplaced(name string) (sym rawSymbol, ok bool) {
	want := append([]byte(name), 0)
	for _, t := range i.symbolTables() {
		for n := range t.named(name, want) {
			s := t.row(n)
			if string(t.spelling(s, len(want))) != string(want) || s.kind == placeless {
				continue
			}
			if !i.leftToJIT(s) || ok {
				return s, false // the image holds the address, or there are several such symbols
			}
			sym, ok = s.sectioned(), true
		}
	}
	return sym, ok
}

// leftToJIT reports whether the JIT decides the address of a symbol.
func (i *Image) leftToJIT(s rawSymbol) bool {
	_, known := i.address(s)
	return !known || s.binding == weak
}

// tells reports whether the address of one symbol determines that of the other: they are the same symbol, or lie in the same section, which a JIT moves
// as a whole.
func (s rawSymbol) tells(other rawSymbol) bool {
	if s.section == undefined || s.binding == weak || other.binding == weak {
		return s.section == other.section && s.name == other.name && s.kind == other.kind
	}
	return s.section == other.section
}

func (s rawSymbol) sectioned() rawSymbol {
	if s.section < 0 {
		s.section, s.value = undefined, 0 // the value of a common symbol is its alignment
	}
	return s
}

// linkedPlaces returns all references to symbols whose address the JIT decides.
func (f *elfFormat) linkedPlaces() []linkedPlace {
	if f.image.linked != nil {
		return f.image.linked
	}
	f.image.linked = []linkedPlace{}
	for n, header := range f.file.Sections {
		if header.Type != elf.SHT_RELA || uint64(header.Info) >= uint64(len(f.image.all)) {
			continue
		}
		s := f.image.all[header.Info]
		if !s.Alloc || s.Loaded() == 0 || s.elsewhere || slices.ContainsFunc(f.file.Sections[:n], func(o *elf.Section) bool { return o.Type == elf.SHT_RELA && o.Info == header.Info }) {
			continue
		}
		r, err := f.rela(f.image.all[n])
		if err != nil {
			continue
		}
		for k := range r.len() {
			row := r.row(k)
			sym, err := r.symbol(row)
			if err != nil || row.off > s.Size || s.Size-row.off < 4 {
				continue
			}
			if !f.image.leftToJIT(sym) {
				continue
			}
			f.image.linked = append(f.image.linked, linkedPlace{s.Loaded() + machine.Addr(row.off), elf.R_X86_64(row.kind), sym.sectioned(), row.addend})
		}
	}
	return f.image.linked
}

// read returns the address of the symbol from the relocated bytes in memory.
func (p linkedPlace) read(mem machine.Memory) (machine.Addr, bool) {
	var b [6]byte // starts two bytes before the place, in the same instruction
	if mem.ReadMemory(b[:], p.at-2) != nil {
		return 0, false
	}
	relative := func(field []byte, from machine.Addr) machine.Addr {
		return from + machine.Addr(int32(binary.LittleEndian.Uint32(field)))
	}
	word := func(at machine.Addr) (machine.Addr, bool) {
		var raw [8]byte
		if mem.ReadMemory(raw[:], at) != nil {
			return 0, false
		}
		to := machine.Addr(binary.LittleEndian.Uint64(raw[:]))
		return to, to != 0
	}
	switch p.kind {
	case elf.R_X86_64_64:
		to, ok := word(p.at)
		return to - machine.Addr(p.addend), ok && to != machine.Addr(p.addend)
	case elf.R_X86_64_PC32, elf.R_X86_64_PLT32:
		if binary.LittleEndian.Uint32(b[2:]) == 0 {
			return 0, false // the JIT has not relocated it yet
		}
		return relative(b[2:], p.at) - machine.Addr(p.addend), true
	case elf.R_X86_64_GOTPCREL, elf.R_X86_64_GOTPCRELX, elf.R_X86_64_REX_GOTPCRELX:
		// A linker may relax a load from the GOT to these forms: System V ABI, AMD64 supplement, B.2.
		switch {
		case p.addend != ^uint64(3) || binary.LittleEndian.Uint32(b[2:]) == 0:
		case b[0] == 0x8d, b[0] == 0x67 && b[1] == 0xe8: // lea; or call, after a prefix that fills the spare byte
			return relative(b[2:], p.at+4), true
		case b[0] == 0xe9: // jmp, followed by a nop
			return relative(b[1:], p.at+3), true
		case b[0] == 0x8b, b[0] == 0xff && (b[1] == 0x15 || b[1] == 0x25):
			return word(relative(b[2:], p.at+4))
		}
	}
	return 0, false
}
