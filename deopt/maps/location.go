package maps

import (
	"strconv"

	"reframe/deopt/frame"
	"reframe/deopt/machine"
	"reframe/deopt/stackmap"
)

// LocationOf says in the frame's own words where a value lives.
func LocationOf(m *stackmap.Map, l stackmap.Location, arch *machine.Arch) *frame.Location {
	out := locationOf(m, l, arch)
	return &out
}

func locationOf(m *stackmap.Map, l stackmap.Location, arch *machine.Arch) frame.Location {
	out := frame.Location{Kind: l.Kind.String(), Offset: l.Offset, Size: int(l.Size)}
	if l.Kind == stackmap.Constant || l.Kind == stackmap.ConstantIndex {
		if v, err := m.Constant(l); err == nil {
			out.Constant = strconv.FormatInt(int64(v), 10)
		}
		return out
	}
	out.DWARF, out.Register = numberOf(l.Reg), arch.RegisterName(l.Reg)
	return out
}

// numbers are those of registers that architectures have: a million locations share them.
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
