package object

import (
	"debug/elf"

	"reframe/deopt/machine"
)

// Entry returns the address of the code of the function that addr stands for, and false where the
// image does not tell it.
//
// The two are the same but for 64-bit PowerPC, big-endian, where the address of a function, in stack maps
// too, is that of its descriptor in .opd: the address of its code, of its data, and an
// environment (64-bit PowerPC ELF ABI 1.9, 3.2.2). Its symbol is at the descriptor, with the size of the code.
func (i *Image) Entry(addr machine.Addr) (machine.Addr, bool) {
	f, ok := i.format.(*elfFormat)
	if !ok || f.file.Machine != elf.EM_PPC64 {
		return addr, true
	}
	s := i.Section(".opd")
	if s == nil || !s.Contains(addr) {
		return addr, true
	}
	// PlaceSections may have moved all sections since.
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
