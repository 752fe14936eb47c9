package maps

import (
	"fmt"

	"reframe/deopt/frame"
	"reframe/deopt/machine"
	"reframe/deopt/stackmap"
)

// LocationOf says in the frame's own words where a value lives.
func LocationOf(m *stackmap.Map, l stackmap.Location, arch *machine.Arch) *frame.Location {
	out := &frame.Location{Kind: l.Kind.String(), Offset: l.Offset, Size: int(l.Size)}
	if l.Kind == stackmap.Constant || l.Kind == stackmap.ConstantIndex {
		if v, err := m.Constant(l); err == nil {
			out.Constant = fmt.Sprint(int64(v))
		}
		return out
	}
	number := uint16(l.Reg)
	out.DWARF, out.Register = &number, arch.RegisterName(l.Reg)
	return out
}
