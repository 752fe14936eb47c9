package deopt

import (
	"errors"
	"fmt"

	"reframe/deopt/frame"
	"reframe/deopt/ir"
	"reframe/deopt/lanes"
	"reframe/deopt/machine"
	"reframe/deopt/stackmap"
)

// operand reads a live value of a site, which is of type t.
func (r *reader) operand(index int, name string, s *ir.Site, t *ir.Type, typ frame.Type, l stackmap.Location) frame.Slot {
	leaf := firstLeaf(t)
	if leaf.Kind != ir.VectorKind {
		return r.slot(index, name, typ, l)
	}
	slot := frame.Slot{Index: index, Name: name, Type: typ, Status: frame.OK, Location: location(r.m, l, r.arch)}
	raw, err := r.bytes(l)
	switch {
	case err != nil:
	case marksUndef(r.m, l):
		err = errors.New(undefMark)
	default:
		raw, err = unpacked(s, leaf, l, raw, r.arch)
	}
	r.value(&slot, raw, err, l)
	return slot
}

// unpacked returns the bytes of a vector as a store of its type leaves them, of those that a location holds.
func unpacked(s *ir.Site, t *ir.Type, l stackmap.Location, raw []byte, arch *machine.Arch) ([]byte, error) {
	layout, err := vectorLayout(s, t, l, arch)
	if err != nil {
		return nil, err
	}
	return layout.Pack(raw, arch.Order)
}

// vectorLayout says how the elements of a vector lie in a location of a site's record.
func vectorLayout(s *ir.Site, t *ir.Type, l stackmap.Location, arch *machine.Arch) (lanes.Layout, error) {
	if l.Kind != stackmap.Register && l.Kind != stackmap.Indirect {
		return lanes.Layout{}, fmt.Errorf("a %s is no number, and the record has one", t)
	}
	return lanes.Of(t, s.Func.Module.Layout, lanes.Place{
		Arch: arch, Register: l.Kind == stackmap.Register, Size: int(l.Size), Stored: statepointLike(s),
	})
}
