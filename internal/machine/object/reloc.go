package object

import (
	"encoding/binary"
	"strings"

	"example.com/reframe/internal/machine"
)

// Relocation is a relocated place of a section.
type Relocation struct {
	Offset  uint64 // offset in the section
	Addend  int64
	Defined bool // the image defines the symbol, and the bytes hold its address

	symbol rawSymbol
	table  *symbolTable
}

// Symbol returns the name of the symbol, or "" if the relocation refers to a section.
func (r Relocation) Symbol() string {
	if r.table == nil || r.symbol.kind == sectionSymbol {
		return ""
	}
	return r.table.name(r.symbol)
}

// Relocated returns the bytes of the section after relocation, with the image's own addresses (without Bias), and the relocations in the order of the
// image.
//
// For an unlinked image, address = sh_addr[st_shndx] + st_value + addend. The result equals byte for byte what RuntimeDyld wrote into memory. JITLink
// does not keep the stack map section in memory, so this is its only source.
//
// If the image does not define the symbol of a relocation, it is not applied, and Defined is false.
func (s *Section) Relocated() ([]byte, []Relocation, error) {
	data, err := s.Data()
	if err != nil {
		return nil, nil, err
	}
	relocations, err := s.image.format.relocate(s, data)
	if err != nil {
		return nil, nil, err
	}
	return data, relocations, nil
}

// Undefined returns the number of relocations whose symbol the image does not define.
func Undefined(relocations []Relocation) int {
	n := 0
	for _, r := range relocations {
		if !r.Defined {
			n++
		}
	}
	return n
}

// put writes the low size bytes of v; size is 1, 2, 4 or 8.
func put(p []byte, size int, v uint64, order binary.ByteOrder) {
	switch size {
	case 1:
		p[0] = byte(v)
	case 2:
		order.PutUint16(p, uint16(v))
	case 4:
		order.PutUint32(p, uint32(v))
	case 8:
		order.PutUint64(p, v)
	}
}

// get reads a number that [put] wrote.
func get(p []byte, size int, order binary.ByteOrder) uint64 {
	switch size {
	case 1:
		return uint64(p[0])
	case 2:
		return uint64(order.Uint16(p))
	case 4:
		return uint64(order.Uint32(p))
	}
	return order.Uint64(p)
}

// address returns the loaded address of a symbol, and false if the image does not define it.
func (i *Image) address(sym rawSymbol) (machine.Addr, bool) {
	switch {
	case sym.section == absolute:
		return machine.Addr(sym.value), true
	case sym.section < 0 || sym.section >= len(i.all):
		return 0, false
	case i.all[sym.section].elsewhere:
		return 0, false
	case i.format.relative() && !i.all[sym.section].Alloc && strings.HasPrefix(i.all[sym.section].Name, ".debug_"):
		// In debug information the value is an offset in its section, even if a JIT wrote an address into that section's header.
		return machine.Addr(sym.value), true
	case i.Registered && i.format.relative() && i.all[sym.section].Addr == 0:
		// JITLink of LLVM 19 writes no address into the headers of sections without content, such as .bss.
		return 0, false
	case i.format.relative():
		return i.all[sym.section].Addr + machine.Addr(sym.value), true
	}
	return machine.Addr(sym.value) + i.Bias, true
}
