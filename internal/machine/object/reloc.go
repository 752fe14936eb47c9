package object

import (
	"encoding/binary"
	"strings"

	"example.com/reframe/internal/machine"
)

// Relocation is one place of a section that was, or could not be, filled in.
type Relocation struct {
	Offset  uint64 // in the section
	Addend  int64
	Defined bool // the image defines the symbol, so the bytes hold its address now

	symbol rawSymbol
	table  *symbolTable
}

// Symbol returns the name of the symbol, or "" for a section.
func (r Relocation) Symbol() string {
	if r.table == nil || r.symbol.kind == sectionSymbol {
		return ""
	}
	return r.table.name(r.symbol)
}

// Relocated returns the bytes of the section as a loader would leave them, with the addresses that the image itself gives (Bias is not added), and
// the relocations, in the order of the image.
//
// For an unlinked image, address = sh_addr[st_shndx] + st_value + addend. That equals what
// RuntimeDyld wrote into memory, byte for byte, and with JITLink, which keeps
// no section in memory, it is the only way.
//
// A relocation against a symbol that the image does not define is not applied and is not Defined: the image does not hold the symbol's address.
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

// Undefined counts the relocations against symbols that the image does not define.
func Undefined(relocations []Relocation) int {
	n := 0
	for _, r := range relocations {
		if !r.Defined {
			n++
		}
	}
	return n
}

// put writes the low size bytes of v: 1, 2, 4 or 8.
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

// get reads what [put] writes.
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

// address returns where a symbol is loaded, and false where the image does not define it.
func (i *Image) address(sym rawSymbol) (machine.Addr, bool) {
	switch {
	case sym.section == absolute:
		return machine.Addr(sym.value), true
	case sym.section < 0 || sym.section >= len(i.all):
		return 0, false
	case i.all[sym.section].elsewhere:
		return 0, false
	case i.format.relative() && !i.all[sym.section].Alloc && strings.HasPrefix(i.all[sym.section].Name, ".debug_"):
		// A place in debug information is an offset in its section, whatever address a JIT has written into that one's header.
		return machine.Addr(sym.value), true
	case i.Registered && i.format.relative() && i.all[sym.section].Addr == 0:
		// JITLink of LLVM 19 writes no address into the headers of sections without content, such as .bss.
		return 0, false
	case i.format.relative():
		return i.all[sym.section].Addr + machine.Addr(sym.value), true
	}
	return machine.Addr(sym.value) + i.Bias, true
}
