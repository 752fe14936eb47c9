package deopt

import (
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
)

// operand reads a live value of type t of a site.
func (r *Reader) operand(index int, name string, s *ir.Site, t *ir.Type, typ frame.Type, l stackmap.Location) frame.Slot {
	leaf := sites.FirstLeaf(t)
	if leaf.Kind != ir.VectorKind {
		return r.slot(index, name, typ, l)
	}
	slot := frame.Slot{Index: index, Name: name, Type: typ, Status: frame.OK, Location: new(stackmap.LocationOf(r.Map, l, r.Arch))}
	raw, err := r.Bytes(l)
	switch {
	case err != nil:
	case sites.MarksUndef(r.Map, l):
		err = frame.Because(frame.MayBeUndef, sites.UndefMark)
	default:
		raw, err = unpacked(s, leaf, l, raw, r.Arch)
	}
	r.value(&slot, raw, err, l)
	return slot
}

// unpacked converts the bytes of a vector at a location to the bytes that a store of its type writes.
func unpacked(s *ir.Site, t *ir.Type, l stackmap.Location, raw []byte, arch *machine.Arch) ([]byte, error) {
	layout, err := sites.VectorLayout(s, t, l, arch)
	if err != nil {
		return nil, frame.Because(frame.VectorLayout, err)
	}
	return layout.Pack(raw, arch.Order)
}
