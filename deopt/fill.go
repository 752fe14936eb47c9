package deopt

import (
	"cmp"
	"fmt"
	"math/big"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/vm/layout"
)

// fill reads the slots of a frame whose record is known, names them, and sets where the frame resumes.
func (f *Frame) fill(layouts []*layout.Layout) error {
	m := f.match
	f.Kind = frame.JIT
	site := string(m.Kind)
	if site == "" {
		site = UnknownSite
	}
	f.Record = &frame.Record{ID: uint64(m.Entry.Record.ID), Site: site, Offset: uint64(m.Entry.Record.Offset), Moment: m.Moment}
	r := f.Reader()
	if m.Site != nil {
		f.fillNamed(r)
	} else if all := m.agreements(); all != nil {
		f.fillAgreed(r, all)
	} else {
		f.fillRaw(r)
	}
	f.refuseContradictions()
	f.refuseBetweenRecords()
	f.fillVM()
	exit, layout, err := f.ExitOf(layouts)
	switch {
	case err != nil:
		return err
	case exit != nil:
		slots, values := f.Slots, f.values
		mistake := f.applyExit(exit, layout)
		if err = f.view.excuse(mistake); mistake != nil && err == nil {
			f.Slots, f.values, f.to, f.Resume, f.mistake = slots, values, nil, nil, mistake
			f.Notes = append(f.Notes, "the layout is not applied: "+mistake.Error())
		}
	default:
		f.carryOn()
	}
	f.doubtSlots()
	return err
}

// Reader reads the values of the frame's record.
func (f *Frame) Reader() *Reader {
	arch := f.view.target.Arch()
	r := &Reader{arch, f.match.memoryAt(&f.physical, f.view.memory), f.match.registersAt(&f.physical, arch), f.match.Entry.Map}
	if f.match.Moves != nil {
		r.Registers, r.Memory = f.afterMoves(f.match.Moves)
	}
	return r
}

// fillRaw makes slots for a record that no module describes: loc0, loc1 and so on.
func (f *Frame) fillRaw(r *Reader) {
	f.fillUnnamed(r, f.match.recorded())
	if f.match.Kind == ir.StatepointSite || f.match.Kind == ir.DeoptimizeSite {
		if sp, ok := f.match.Entry.Record.AsStatepoint(); ok {
			f.fillUnnamed(r, sp.AfterDeopt())
			stackmap.Pairs(f.Slots, &sp, r.Map, r.Arch)
		}
	}
}

// fillUnnamed adds slots without a name and a type.
func (f *Frame) fillUnnamed(r *Reader, locations []stackmap.Location) {
	for _, l := range locations {
		k := len(f.Slots)
		f.Slots = append(f.Slots, r.slot(k, fmt.Sprintf("loc%d", k), frame.Type{}, l))
	}
}

// fillNamed makes slots for the operands of the site: operand k is live value k.
func (f *Frame) fillNamed(r *Reader) {
	s := f.match.Site
	a, _ := sites.Align(s, f.match.Entry)
	variables := f.view.modules.Variables(s)
	for k, v := range s.Live {
		slot := frame.Slot{Index: k, Name: sites.NameOf(v), Type: interp.FrameType(f.dataLayout(), v.Type()), Status: frame.Missing}
		l, located := a.Location(k)
		if located {
			slot = r.operand(k, slot.Name, s, v.Type(), slot.Type, l)
			refuse(&slot, v.Type(), l, s, r.Arch)
		} else {
			slot.Clear(frame.Missing, a.Unknown(k, v.Type()))
		}
		if !sites.IsConst(v) {
			markUndef(r, &slot, l)
		}
		if sites.IsUndef(v) {
			// LLVM records any location for undef, and its content cannot be distinguished from a value.
			slot.Clear(frame.Undefined, frame.Because(frame.ModuleUndef, v.Ref()))
		}
		slot.Variable = variables[k]
		f.Slots = append(f.Slots, slot)
		if sites.NameOf(v) != "" {
			f.values = append(f.values, bound{v, len(f.Slots) - 1})
		}
	}
	switch {
	case a.Moved:
		f.fillMoved(r, &a)
	case a.Statepoint != nil:
		f.fillGC(r, a.Statepoint)
	}
}

// fillMoved adds slots without values for the locations after the deopt values of a statepoint's record. It is used if one of the deopt values is
// missing from the record.
func (f *Frame) fillMoved(r *Reader, a *sites.Alignment) {
	for _, l := range a.AfterDeopt() {
		k := len(f.Slots)
		slot := frame.Slot{Index: k, Name: fmt.Sprintf("loc%d", k), Location: new(stackmap.LocationOf(r.Map, l, r.Arch))}
		slot.Clear(frame.Missing, frame.Because(frame.AfterOmitted, sites.AfterMoved))
		f.Slots = append(f.Slots, slot)
	}
}

// refuse clears a slot of type t if the location cannot hold the whole value. It clears the formatted value of a struct or an array if LLVM may have
// recorded only its element.
func refuse(slot *frame.Slot, t *ir.Type, l stackmap.Location, s *ir.Site, arch *machine.Arch) {
	if why := sites.Halved(s, t, l, arch); why != "" {
		slot.Clear(frame.Missing, frame.Because(frame.PartRecorded, why))
	}
	if sites.Reshaped(s, t) {
		slot.Value = ""
	}
}

// dataLayout returns the data layout of the module that contains the frame's site.
func (f *Frame) dataLayout() *ir.DataLayout { return f.match.Site.Func.Module.Layout }

// ExitOf returns the exit that a layout gives for the frame, and that layout; nil for none.
func (f *Frame) ExitOf(layouts []*layout.Layout) (*layout.Exit, *layout.Layout, error) {
	counted := f.match.counted()
	for _, l := range layouts {
		if !counted && l.Meant(f.Function, f.Record.ID) {
			f.Notes = append(f.Notes, l.Name+": not applied: only the module gives the locations of the live values; give it with --ir")
			continue
		}
		x, why := l.Apply(f.Function, f.Record.ID, f.Slots)
		if why != nil {
			f.AddNote(why)
		}
		if x != nil {
			return x, l, nil
		}
	}
	return nil, nil, nil
}

// applyExit replaces the slots of the record by those that the layout lists.
func (f *Frame) applyExit(x *layout.Exit, l *layout.Layout) error {
	to, err := f.destination(x, l)
	if err != nil {
		return err
	}
	record := f.Slots
	f.to = to
	f.Slots, f.values = nil, nil
	for n, want := range x.Slots {
		if want.Operand < 0 || want.Operand >= len(record) {
			return l.Wrong(fmt.Sprintf("%s.slots[%d].operand", x.Path, n),
				layout.NoSuchOperand(want.Operand, fmt.Sprintf("record %d of @%s has", f.Record.ID, f.Function), len(record)))
		}
		slot := record[want.Operand]
		own := slot.Name
		slot.Name = want.Name
		f.doubt(&slot, want.Operand)
		if to != nil {
			v := layout.Value(to, want.Name)
			slot.Name = v.Ref() // in the module's spelling
			t := interp.FrameType(to.Module.Layout, v.Type())
			if slot.Status == frame.OK {
				if err := f.extend(&slot, t, want.Extend); err != nil {
					return l.Wrong(fmt.Sprintf("%s.slots[%d].extend", x.Path, n), fmt.Errorf("%s of @%s: %w", want.Name, to.Name, err))
				}
				if err := f.retype(&slot, t); err != nil {
					return l.Wrong(fmt.Sprintf("%s.slots[%d]", x.Path, n), fmt.Errorf("%s of @%s: %w", want.Name, to.Name, err))
				}
			}
			slot.Type = t
			f.values = append(f.values, bound{v, len(f.Slots)})
		}
		if own != slot.Name && (f.match.Site != nil || f.match.agreements() != nil) { // otherwise slot.Name was derived from the location
			slot.Operand = own
		}
		f.Slots = append(f.Slots, slot)
	}
	f.Resume = &frame.Resume{Function: x.Resume.Function, Demangled: names.IfMangled(x.Resume.Function), Block: x.Resume.Block}
	return nil
}

// doubt clears a slot of the record if one of several possible sites leaves it undefined.
func (f *Frame) doubt(slot *frame.Slot, operand int) {
	if locations := f.match.recorded(); f.match.Site == nil && operand < len(locations) {
		f.suspect(slot, operand, locations[operand])
	}
}

// suspect clears a slot, which holds the live value at location l, if one of several possible sites leaves it undefined.
func (f *Frame) suspect(slot *frame.Slot, operand int, l stackmap.Location) {
	if slot.Status != frame.OK {
		return
	}
	var why error
	if sites.MarksUndef(f.match.Entry.Map, l) {
		why = frame.Because(frame.MayBeUndef, sites.UndefMark)
	}
	for _, s := range f.match.Sites {
		if v := s.Live; operand < len(v) && sites.IsUndef(v[operand]) {
			why = frame.Because(frame.OtherSiteUndef, s.Instr.Line)
		}
	}
	if why != nil {
		slot.Clear(frame.Missing, why)
	}
}

// destination returns the IR function in which an exit resumes, or nil if no module defines it.
func (f *Frame) destination(x *layout.Exit, l *layout.Layout) (*ir.Func, error) {
	var left *ir.Module
	if f.match.Site != nil {
		left = f.match.Site.Func.Module
	}
	to, defined := x.Destination(f.view.modules, left)
	switch {
	case to != nil:
		return to, l.CheckInto(x, to)
	case defined > 0:
		return nil, l.Wrong(x.Path+".resume.function", fmt.Errorf("%d of the given modules define @%s, and it is unknown which of them resumes from %s",
			defined, x.Resume.Function, f.Title()))
	}
	return nil, nil
}

// extend widens an integer to the type that it has in the function which resumes, as the layout specifies.
func (f *Frame) extend(s *frame.Slot, t frame.Type, how layout.Extension) error {
	switch {
	case how == "" || s.Type.Kind == frame.Int && t.Kind == frame.Int && s.Type.Bits == t.Bits:
		return nil
	case s.Type.Kind != frame.Int || t.Kind != frame.Int:
		return fmt.Errorf("it is %s there, and live value %d is %s: only integers can be widened", t.Source, s.Index, cmp.Or(s.Type.Source, "of an unknown type"))
	case s.Type.Bits > t.Bits:
		return fmt.Errorf("it is %s there, and live value %d is %s: a layout can widen values, but not narrow them", t.Source, s.Index, s.Type.Source)
	}
	order := f.view.target.Arch().Order
	n := frame.Number(f.Masked(s), order)
	if how == layout.SignExtend && n.Bit(s.Type.Bits-1) != 0 {
		n = new(big.Int).Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(s.Type.Bits)))
	}
	s.Bytes = fixed(n, t.Bits, t.Size(), order)
	s.Type = t
	return nil
}

// retype gives a slot its type in the function that resumes.
func (f *Frame) retype(s *frame.Slot, t frame.Type) error {
	arch := f.view.target.Arch()
	if !s.Type.IsZero() && !layout.Fits(s.Type, t) {
		return fmt.Errorf("it is %s there, and live value %d is %s", t.Source, s.Index, s.Type.Source)
	}
	if s.Type.IsZero() && t.Kind == frame.Vector && t.Bits != 8*len(s.Bytes) {
		// The compiled type determines the positions of the elements. Without it, they are certain only if the vector fills the location.
		return fmt.Errorf("it is %s there, and the type that live value %d was compiled as is unknown: there may be gaps between its elements in the %d bytes of the record",
			t.Source, s.Index, len(s.Bytes))
	}
	var at stackmap.Location
	if s.Location != nil && s.Location.Kind == stackmap.Register.String() && s.Location.DWARF != nil {
		at.Kind, at.Reg = stackmap.Register, machine.DWARFReg(*s.Location.DWARF)
	}
	raw, err := fit(s.Bytes, t, at, arch)
	if err != nil {
		return err
	}
	s.Bytes = mask(raw, t, arch)
	s.Hex = frame.HexBytes(s.Bytes, arch.Order)
	if !t.Composite() { // a composite value that can be formatted was formatted before
		s.Value = t.Format(s.Bytes, arch.Order)
	}
	return nil
}

// carryOn sets the frame to resume at its own site. It is used for a frame that no layout describes.
func (f *Frame) carryOn() {
	s := f.match.Site
	if s == nil || s.Kind == ir.DeoptimizeSite || f.folded() != nil {
		return
	}
	f.to = s.Func
	f.Resume = &frame.Resume{Function: s.Func.Name, Demangled: names.IfMangled(s.Func.Name), Block: s.Instr.Block.Name}
	label := s.Instr.Ref()
	if s.Instr.Name == "" {
		label = fmt.Sprintf("instruction %d", s.Instr.Index)
	}
	if f.match.Moment == frame.Before {
		f.Resume.At = label
	} else {
		f.Resume.After = label
	}
}
