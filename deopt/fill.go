package deopt

import (
	"fmt"
	"slices"

	"reframe/deopt/frame"
	"reframe/deopt/interp"
	"reframe/deopt/ir"
	"reframe/deopt/stackmap"
)

type stackmapEntry = stackmap.Entry

// fill reads the slots of a frame whose record is known, names them, and says where
// the frame carries on.
func (f *Frame) fill(layouts []*Layout) error {
	m := f.match
	f.Kind = frame.JIT
	site := string(m.kind)
	if site == "" {
		site = unknownSite
	}
	f.Record = &frame.Record{ID: uint64(m.entry.Record.ID), Site: site, Offset: uint64(m.entry.Record.Offset), Moment: m.moment}
	arch := f.view.target.Arch()
	r := &reader{arch, f.view.target, m.registersAt(&f.physical, arch), m.entry.Map}
	if m.site == nil {
		f.fillRaw(r)
	} else {
		f.fillNamed(r)
	}
	exit, layout, err := f.exit(layouts)
	switch {
	case err != nil:
		return err
	case exit != nil:
		return f.applyExit(exit, layout)
	}
	f.carryOn()
	return nil
}

// fillRaw makes slots of a record of which no module says more: loc0, loc1 and so on.
func (f *Frame) fillRaw(r *reader) {
	locations := f.match.entry.Record.Locations
	var extra []stackmap.Location
	if f.match.kind == ir.StatepointSite || f.match.kind == ir.DeoptimizeSite {
		if sp, ok := f.match.entry.Map.AsStatepoint(f.match.entry.Record); ok {
			locations = sp.Deopt
			for _, p := range sp.Pairs {
				extra = append(extra, p.Base, p.Derived)
			}
			extra = append(extra, sp.Allocas...)
		}
	}
	for i, l := range slices.Concat(locations, extra) {
		f.Slots = append(f.Slots, r.slot(i, fmt.Sprintf("loc%d", i), frame.Type{}, l))
	}
}

// fillNamed makes slots of the operands of the site: operand k is live value k.
func (f *Frame) fillNamed(r *reader) {
	s := f.match.site
	locations, sp, _ := live(s, f.match.entry)
	at := 0
	for k, v := range s.Live {
		slot := frame.Slot{Index: k, Name: name(v), Type: interp.FrameType(f.dataLayout(), v.Type()), Status: frame.Missing,
			Reason: "LLVM records no location for an " + v.Type().String()}
		if !noLocation(s, v) {
			slot = r.slot(k, slot.Name, slot.Type, locations[at])
			if why := halved(v.Type(), locations[at], f.dataLayout()); why != "" {
				slot.Status, slot.Reason, slot.Value, slot.Hex, slot.Bytes = frame.Missing, why, "", "", nil
			}
			at++
		}
		if c, ok := v.(*ir.Const); ok && (c.Kind == ir.ConstUndef || c.Kind == ir.ConstPoison) {
			// What is recorded for it is whatever came cheapest, and cannot be told from a value.
			slot.Status, slot.Reason = frame.Undefined, fmt.Sprintf("the module has %s here", c.Ref())
			slot.Value, slot.Hex, slot.Bytes = "", "", nil
		}
		f.Slots = append(f.Slots, slot)
		if name(v) != "" {
			f.values = append(f.values, bound{v, len(f.Slots) - 1})
		}
	}
	if sp != nil {
		f.fillGC(r, sp, locations)
	}
}

// fillGC adds the gc pointers that are not among the deopt values. The record has
// their pairs in an order of the compiler's own, so a pair gets a name only where
// nothing else is possible: its location is that of a named deopt value, or one
// pointer and one pair are left.
func (f *Frame) fillGC(r *reader, sp *stackmap.Statepoint, deopt []stackmap.Location) {
	var left []ir.Value
	for _, v := range f.match.site.GCLive {
		if _, isAlloca := v.(*ir.Instr); isAlloca && v.(*ir.Instr).Op == ir.OpAlloca {
			continue
		}
		known := slices.ContainsFunc(f.values, func(b bound) bool { return b.value == v })
		if !known && !slices.Contains(left, v) && name(v) != "" {
			left = append(left, v)
		}
	}
	var pairs []stackmap.Location
	for _, p := range sp.Pairs {
		for _, l := range []stackmap.Location{p.Base, p.Derived} {
			if !slices.Contains(deopt, l) && !slices.Contains(pairs, l) {
				pairs = append(pairs, l)
			}
		}
	}
	for _, l := range pairs {
		index := len(f.Slots)
		if len(left) == 1 && len(pairs) == 1 {
			f.Slots = append(f.Slots, r.slot(index, name(left[0]), interp.FrameType(f.dataLayout(), left[0].Type()), l))
			f.values = append(f.values, bound{left[0], index})
			continue
		}
		f.Slots = append(f.Slots, r.slot(index, fmt.Sprintf("loc%d", index), frame.Type{}, l))
	}
}

// dataLayout returns the layout of the module that the frame's site is in.
func (f *Frame) dataLayout() *ir.DataLayout { return f.match.site.Func.Module.Layout }

// name is how the source spells a value, or "" for a constant.
func name(v ir.Value) string {
	switch v := v.(type) {
	case *ir.Param:
		return v.Ref()
	case *ir.Instr:
		return v.Ref()
	}
	return ""
}

// exit returns the exit of a layout that the frame took, if one is meant for it.
func (f *Frame) exit(layouts []*Layout) (*Exit, *Layout, error) {
	for _, l := range layouts {
		x, why := l.apply(f.Function, f.Record.ID, f.Slots)
		if why != "" {
			f.Notes = append(f.Notes, why)
		}
		if x != nil {
			return x, l, nil
		}
	}
	return nil, nil, nil
}

// applyExit replaces the slots of the record by those that the layout names.
func (f *Frame) applyExit(x *Exit, l *Layout) error {
	to := f.view.modules.function(x.Resume.Function)
	record := f.Slots
	f.Slots, f.values = nil, nil
	for n, want := range x.Slots {
		if want.Operand < 0 || want.Operand >= len(record) {
			return &LayoutError{l.Name, fmt.Sprintf("slots[%d].operand", n),
				fmt.Errorf("%d, and record %d of @%s has %d live values, counted from 0", want.Operand, f.Record.ID, f.Function, len(record))}
		}
		slot := record[want.Operand]
		slot.Name = want.Name
		if to != nil {
			v := value(to, want.Name)
			t := interp.FrameType(to.Module.Layout, v.Type())
			if slot.Status == frame.OK {
				if err := f.retype(&slot, t); err != nil {
					return &LayoutError{l.Name, fmt.Sprintf("slots[%d]", n), fmt.Errorf("%s of @%s: %w", want.Name, to.Name, err)}
				}
			}
			slot.Type = t
			f.values = append(f.values, bound{v, len(f.Slots)})
		}
		f.Slots = append(f.Slots, slot)
	}
	f.Resume = &frame.Resume{Function: x.Resume.Function, Block: x.Resume.Block}
	return nil
}

// retype gives a slot the type that the function which carries on knows it by.
func (f *Frame) retype(s *frame.Slot, t frame.Type) error {
	arch := f.view.target.Arch()
	if !s.Type.IsZero() && s.Type.Bits != t.Bits {
		return fmt.Errorf("it is %s there, and live value %d is %s", t.Source, s.Index, s.Type.Source)
	}
	raw, err := fit(s.Bytes, t, stackmap.Location{}, arch)
	if err != nil {
		return err
	}
	s.Bytes = mask(raw, t, arch)
	s.Value, s.Hex = t.Format(s.Bytes, arch.Order), frame.HexBytes(s.Bytes, arch.Order)
	return nil
}

// carryOn says where a frame without a layout carries on: at its own site.
func (f *Frame) carryOn() {
	s := f.match.site
	if s == nil || s.Kind == ir.DeoptimizeSite {
		return
	}
	f.Resume = &frame.Resume{Function: s.Func.Name, Block: s.Instr.Block.Name}
	label := s.Instr.Ref()
	if s.Instr.Name == "" {
		label = fmt.Sprintf("instruction %d", s.Instr.Index)
	}
	if f.match.moment == frame.Before {
		f.Resume.At = label
	} else {
		f.Resume.After = label
	}
}
