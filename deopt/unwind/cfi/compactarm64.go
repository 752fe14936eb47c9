package cfi

import "example.com/reframe/internal/machine"

// Modes of encodings for arm64.
const (
	arm64NoInfo    = 0x00000000
	arm64Frameless = 0x02000000 // a leaf: x29 and x30 are unchanged
	arm64DWARF     = 0x03000000
	arm64Frame     = 0x04000000 // x29 points to a pair of saved x29 and x30
)

// Fields of the encodings.
const (
	arm64Size  = 0x00fff000 // for arm64Frameless: size of the frame in units of 16 bytes
	arm64Pairs = 0x00000f1f // pairs of saved registers
)

// arm64Pair is a bit of an encoding and the first register of the pair that the bit marks as saved.
type arm64Pair struct {
	bit   uint32
	first machine.DWARFReg
}

// arm64Saved lists the pairs in descending order of their addresses; the slot of the first register of each pair is above that of the second. Of
// v8 to v15 only the low halves d8 to d15 are saved.
var arm64Saved = [...]arm64Pair{
	{0x001, 19}, {0x002, 21}, {0x004, 23}, {0x008, 25}, {0x010, 27},
	{0x100, 72}, {0x200, 74}, {0x400, 76}, {0x800, 78},
}

// arm64 makes the row of e.
func (e *CompactEntry) arm64(row *Row) error {
	next := int64(0) // the next register is saved below this offset from the CFA
	switch e.Encoding & compactMode {
	case arm64NoInfo:
		if err := e.only(0); err != nil {
			return err
		}
		return ErrNoFDE
	case arm64Frameless:
		if err := e.only(arm64Size | arm64Pairs); err != nil {
			return err
		}
		row.CFA = CFARule{Kind: CFARegister, Register: machine.ARM64.SP, Offset: 16 * int64(e.Encoding&arm64Size>>12)}
	case arm64Frame:
		if err := e.only(arm64Pairs); err != nil {
			return err
		}
		row.CFA = CFARule{Kind: CFARegister, Register: machine.ARM64.FP, Offset: 16}
		row.saved(machine.ARM64.Link, -8)
		row.saved(machine.ARM64.FP, -16)
		next = -16
	case arm64DWARF:
		return ErrInFDE
	default:
		return e.errorf("encoding %#08x: unknown mode %d of arm64", e.Encoding, e.Encoding&compactMode>>24)
	}
	for _, pair := range arm64Saved {
		if e.Encoding&pair.bit != 0 {
			row.saved(pair.first, next-8)
			row.saved(pair.first+1, next-16)
			next -= 16
		}
	}
	if row.CFA.Register == machine.ARM64.SP && -next > row.CFA.Offset {
		return e.errorf("encoding %#08x: %d bytes of saved registers in a frame of %d", e.Encoding, -next, row.CFA.Offset)
	}
	return nil
}
