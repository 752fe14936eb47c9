package sites

import (
	"fmt"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// VectorLayout returns the layout of a vector's elements in a location of a site's record.
func VectorLayout(s *ir.Site, t *ir.Type, l stackmap.Location, arch *machine.Arch) (abi.Lanes, error) {
	if l.Kind != stackmap.Register && l.Kind != stackmap.Indirect {
		return abi.Lanes{}, fmt.Errorf("a %s is not a number, but the record has a constant", t)
	}
	return abi.LanesOf(t, s.Func.Module.Layout, abi.LanePlace{
		Arch: arch, Register: l.Kind == stackmap.Register, Size: int(l.Size), Stored: StatepointLike(s),
	})
}
