package object

import (
	"debug/macho"
	"encoding/binary"
	"fmt"
)

// relocAction is the effect of a relocation kind.
type relocAction int

const (
	relocUnknown  relocAction = iota
	relocAddress              // the address of the symbol
	relocMinus                // a subtrahend: the next row names the minuend
	relocDistance             // the distance from the end of its 4-byte field
	relocSigned               // an address that a loader signs with keys of the process
	relocNothing              // no effect here: it modifies the next row, which relocates an instruction
	// relocLeft leaves the place unchanged. Such places are fields of arm64 instructions, and references through a table of addresses that only a linker
	// creates. Of the sections that this program reads, only exception frames have such a reference: their personality.
	relocLeft
)

// machoKinds maps the kinds of mach-o/x86_64/reloc.h and mach-o/arm64/reloc.h to actions.
var machoKinds = map[macho.Cpu]map[uint8]relocAction{
	macho.CpuAmd64: {
		uint8(macho.X86_64_RELOC_UNSIGNED): relocAddress, uint8(macho.X86_64_RELOC_SUBTRACTOR): relocMinus,
		uint8(macho.X86_64_RELOC_SIGNED): relocDistance, uint8(macho.X86_64_RELOC_SIGNED_1): relocDistance,
		uint8(macho.X86_64_RELOC_SIGNED_2): relocDistance, uint8(macho.X86_64_RELOC_SIGNED_4): relocDistance,
		uint8(macho.X86_64_RELOC_BRANCH): relocDistance,
		uint8(macho.X86_64_RELOC_GOT):    relocLeft, uint8(macho.X86_64_RELOC_GOT_LOAD): relocLeft,
		uint8(macho.X86_64_RELOC_TLV): relocLeft,
	},
	macho.CpuArm64: machoArm64Kinds,
	machoCPU32on64: machoArm64Kinds,
}

var machoArm64Kinds = map[uint8]relocAction{
	uint8(macho.ARM64_RELOC_UNSIGNED): relocAddress, uint8(macho.ARM64_RELOC_SUBTRACTOR): relocMinus,
	uint8(macho.ARM64_RELOC_ADDEND):   relocNothing,
	uint8(macho.ARM64_RELOC_BRANCH26): relocLeft, uint8(macho.ARM64_RELOC_PAGE21): relocLeft,
	uint8(macho.ARM64_RELOC_PAGEOFF12):       relocLeft,
	uint8(macho.ARM64_RELOC_GOT_LOAD_PAGE21): relocLeft, uint8(macho.ARM64_RELOC_GOT_LOAD_PAGEOFF12): relocLeft,
	uint8(macho.ARM64_RELOC_POINTER_TO_GOT):   relocLeft,
	uint8(macho.ARM64_RELOC_TLVP_LOAD_PAGE21): relocLeft, uint8(macho.ARM64_RELOC_TLVP_LOAD_PAGEOFF12): relocLeft,
	11: relocSigned, // ARM64_RELOC_AUTHENTICATED_POINTER
}

// relocate applies the relocations of an unlinked image, or the fixups of a linked one. In the result, Defined is false for those that are not applied
// ([relocLeft]).
func (f *machoFormat) relocate(s *Section, data []byte) ([]Relocation, error) {
	if !f.relocatable() {
		return f.fixUp(s, data)
	}
	extent := f.sections[s.index].relocations
	if extent.size == 0 {
		return nil, nil
	}
	kinds, known := machoKinds[f.cpu]
	if !known {
		return nil, &Error{f.image.Name, s.Name, 0, fmt.Errorf("relocations of %s are not supported", cpuName(f.cpu, f.sub))}
	}
	rows, err := f.part("relocations of "+s.Name, extent).Data()
	if err != nil {
		return nil, err
	}
	const row = 8
	l := &machoLinker{f: f, section: s, data: data, done: make([]Relocation, 0, len(rows)/row)}
	for n := 0; n < len(rows); n += row {
		r, err := l.read(rows[n:], n/row)
		if err != nil {
			return nil, err
		}
		if err := l.apply(r, kinds[r.kind]); err != nil {
			return nil, err
		}
	}
	if l.minus != nil {
		return nil, l.fail(l.minus.machoReloc, "has no minuend")
	}
	return l.done, nil
}

// machoReloc is one relocation row (mach-o/reloc.h, struct relocation_info).
type machoReloc struct {
	row      int
	off      uint64 // offset in the section
	target   uint32 // a symbol number; if not external, a section number, counted from 1
	relative bool   // relative to the end of the field
	size     int
	external bool
	kind     uint8
}

// machoLinker applies the relocations of one section.
type machoLinker struct {
	f       *machoFormat
	section *Section
	data    []byte
	done    []Relocation
	minus   *machoTarget // the target of a subtrahend row whose minuend row comes next
}

// machoTarget is the target of a row.
type machoTarget struct {
	machoReloc
	found Relocation
	// value is added to the field. For an external row it is the address of the symbol. The field of another row already holds an address according to the
	// section headers; there value is the distance by which the section was moved.
	value uint64
	start uint64 // address of the section in its header; 0 for a symbol
}

func (l *machoLinker) fail(r machoReloc, format string, args ...any) error {
	name := macho.RelocTypeARM64(r.kind).String()
	if l.f.cpu == macho.CpuAmd64 {
		name = macho.RelocTypeX86_64(r.kind).String()
	}
	return &Error{l.f.image.Name, l.section.Name, int64(r.off), fmt.Errorf("relocation %d, %s: %w", r.row, name, fmt.Errorf(format, args...))}
}

// read decodes one row.
func (l *machoLinker) read(b []byte, row int) (machoReloc, error) {
	off, bits := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	r := machoReloc{row: row, off: uint64(off), target: bits & 0xffffff, relative: bits>>24&1 != 0,
		size: 1 << (bits >> 25 & 3), external: bits>>27&1 != 0, kind: uint8(bits >> 28)}
	const scattered = 1 << 31
	if off&scattered != 0 {
		return r, l.fail(r, "is scattered, which does not occur on %s", cpuName(l.f.cpu, l.f.sub))
	}
	if length := uint64(len(l.data)); r.off > length || length-r.off < uint64(r.size) {
		return r, l.fail(r, "relocates %d bytes of a section of %#x", r.size, length)
	}
	return r, nil
}

// target returns the target of a row.
func (l *machoLinker) target(r machoReloc) (*machoTarget, error) {
	f, t := l.f, &machoTarget{machoReloc: r, found: Relocation{Offset: r.off}}
	if !r.external {
		t.found.Defined = true
		t.found.symbol = rawSymbol{kind: sectionSymbol, section: absolute}
		if r.target == 0 { // R_ABS
			return t, nil
		}
		n := int(r.target) - 1
		if n >= len(f.sections) {
			return nil, l.fail(r, "names section %d of %d", r.target, len(f.sections))
		}
		t.found.symbol.section = n
		t.start = f.sections[n].addr
		t.value = uint64(f.image.all[n].Addr) - t.start
		return t, nil
	}
	symbols, err := f.table()
	if err != nil {
		return nil, err
	}
	sym, ok := symbols.at(uint64(r.target))
	if !ok {
		return nil, l.fail(r, "symbol %d is past the end of the symbol table", r.target)
	}
	addr, defined := f.image.address(sym)
	t.found.symbol, t.found.table, t.found.Defined, t.value = sym, symbols, defined, uint64(addr)
	return t, nil
}

// apply applies one row.
func (l *machoLinker) apply(r machoReloc, action relocAction) error {
	switch {
	case action == relocUnknown:
		return l.fail(r, "is not supported")
	case l.minus != nil && (action != relocAddress || r.off != l.minus.off || r.size != l.minus.size):
		return l.fail(r, "is not the minuend of relocation %d", l.minus.row)
	case action == relocNothing:
		return nil
	}
	t, err := l.target(r)
	if err != nil {
		return err
	}
	if action == relocLeft {
		t.found.Defined = false
		l.done = append(l.done, t.found)
		return nil
	}
	relative := action == relocDistance
	if r.relative != relative || r.size < 4 || relative && r.size != 4 || action == relocSigned && r.size != 8 {
		return l.fail(r, "relocates %d bytes, relative to them: %v", r.size, r.relative)
	}
	if action == relocMinus {
		if !r.external {
			return l.fail(r, "subtracts the address of a section")
		}
		l.minus = t
		return nil
	}
	field := l.data[r.off:]
	var held uint64
	switch {
	case action == relocSigned || r.size == 4: // the upper half of a signed pointer describes the signature
		held = uint64(int64(int32(binary.LittleEndian.Uint32(field))))
	default:
		held = binary.LittleEndian.Uint64(field)
	}
	value := held + t.value
	t.found.Addend = int64(held - t.start)
	if relative {
		here := uint64(l.section.Addr)
		if r.external {
			value -= here + r.off + 4
			t.found.Addend = int64(held)
		} else { // the field already holds the distance, but PlaceSections may have moved the two sections
			value -= here - l.f.sections[l.section.index].addr
			t.found.Addend = int64(held + l.f.sections[l.section.index].addr + r.off + 4 - t.start)
		}
	}
	if m := l.minus; m != nil {
		value -= m.value
		if t.found.Defined && !m.found.Defined {
			t.found = m.found
		}
		l.minus = nil
	}
	if t.found.Defined {
		put(field, r.size, value, binary.LittleEndian)
	}
	l.done = append(l.done, t.found)
	return nil
}
