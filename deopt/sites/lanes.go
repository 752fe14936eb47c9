package sites

import (
	"fmt"

	"reframe/deopt/ir"
	"reframe/deopt/lanes"
	"reframe/deopt/machine"
	"reframe/deopt/stackmap"
)

// VectorLayout returns how the elements of a vector lie in a location of a site's record.
func VectorLayout(s *ir.Site, t *ir.Type, l stackmap.Location, arch *machine.Arch) (lanes.Layout, error) {
	if l.Kind != stackmap.Register && l.Kind != stackmap.Indirect {
		return lanes.Layout{}, fmt.Errorf("a %s is no number, and the record has one", t)
	}
	return lanes.Of(t, s.Func.Module.Layout, lanes.Place{
		Arch: arch, Register: l.Kind == stackmap.Register, Size: int(l.Size), Stored: StatepointLike(s),
	})
}
