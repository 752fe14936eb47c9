package deopt

import (
	"fmt"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/sites"
)

// fillAgreed makes slots for a record that fits several sites, with the types and names on which all these sites agree.
func (f *Frame) fillAgreed(r *Reader, all []sites.Agreed) {
	found := sites.AlignTogether(f.match.Sites, f.match.Entry)
	for k := range all {
		a := &all[k]
		called := sites.NameOf(a.Value)
		if !a.Named() {
			called = fmt.Sprintf("loc%d", k)
		}
		slot := frame.Slot{Index: k, Name: called, Type: a.FrameType(), Status: frame.Missing}
		if l, ok := found.Location(k); ok {
			if a.Typed {
				slot = r.operand(k, called, a.First, a.Value.Type(), slot.Type, l)
				refuse(&slot, a.Value.Type(), l, a.First, r.Arch)
			} else {
				slot = r.slot(k, called, slot.Type, l)
			}
			if !a.Constant {
				f.suspect(&slot, k, l)
			}
		} else {
			slot.Clear(frame.Missing, found.Unknown(k, a.Value.Type()))
		}
		if a.Undefined {
			slot.Clear(frame.Undefined, frame.Because(frame.ModuleUndef, a.Value.Ref()))
			slot.Value, slot.Hex, slot.Bytes = "", "", nil
		}
		f.Slots = append(f.Slots, slot)
	}
	switch {
	case found.Moved:
		f.fillMoved(r, &found)
	case found.Statepoint != nil:
		f.fillUnnamed(r, found.Statepoint.AfterDeopt())
		stackmap.Pairs(f.Slots, found.Statepoint, r.Map, r.Arch)
	}
}

// agreements returns the types and names on which the sites of the record agree. The result is cached.
func (m *Match) agreements() []sites.Agreed {
	if !m.compared {
		m.compared, m.agreed = true, sites.Agreements(m.Sites)
	}
	return m.agreed
}
