package stackmap

import (
	"strconv"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
)

// LocationOf converts a location to the form of abstract frames and their JSON, with the name of the register.
func LocationOf(m *Map, l Location, arch *machine.Arch) frame.Location {
	out := frame.Location{Kind: l.Kind.String(), Offset: l.Offset, Size: int(l.Size)}
	if l.Kind == Constant || l.Kind == ConstantIndex {
		if v, err := m.Constant(l); err == nil {
			out.Constant = strconv.FormatInt(int64(v), 10)
		}
		return out
	}
	out.DWARF, out.Register = numberOf(l.Reg), arch.RegisterName(l.Reg)
	return out
}

// numbers holds the register numbers up to 255, so that the locations of millions of records share the pointers to them.
var numbers = func() (all [256]uint16) {
	for n := range all {
		all[n] = uint16(n)
	}
	return all
}()

func numberOf(reg machine.DWARFReg) *uint16 {
	if int(reg) < len(numbers) {
		return &numbers[reg]
	}
	n := uint16(reg)
	return &n
}
