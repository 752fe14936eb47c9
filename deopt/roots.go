package deopt

import (
	"errors"
	"fmt"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// Roots holds the pointers and stack objects that the record of a statepoint lists for the garbage collector.
type Roots struct {
	// Pointers holds the slots of the frame that are in a pair of base and derived pointer, one for each location. A null constant is not a root.
	Pointers []RootPointer
	// Allocas holds the addresses of the stack objects whose content the collector reads.
	Allocas []frame.Slot
	// Record is the record that lists them. It need not be that of the frame if several records are at the frame's address.
	Record *frame.Record
	// Lost is a slot without a value if the record lacks a deopt value, so that it is not known which locations are pairs; otherwise nil.
	Lost *frame.Slot
}

// RootPointer is a pointer that the collector reads.
type RootPointer struct {
	frame.Slot
	// BaseOnly is set if no pair relocates the pointer: it is only the base of other pointers. The collector may leave it unchanged when the
	// object moves.
	BaseOnly bool
	// Bases holds the location of the base in each pair that relocates the pointer.
	Bases []frame.Location
}

// AddressOf returns the address of the memory that holds a value of the frame. For a Register location, it is the address where an inner frame has
// saved the register. For a Direct location, it is the address of the stack object. stack is the walk that found the frame.
func (f *Frame) AddressOf(l *frame.Location, stack *unwind.Stack) (machine.Addr, error) {
	arch := f.view.target.Arch()
	if l.DWARF == nil {
		return 0, errors.New("a constant has no address")
	}
	reg := machine.DWARFReg(*l.DWARF)
	if l.Kind != stackmap.Register.String() {
		base, err := f.physical.Registers.Addr(reg)
		return base + machine.Addr(int64(l.Offset)), err
	}
	if l.Offset != 0 {
		return 0, fmt.Errorf("the value is in a part of %s", arch.RegisterName(reg))
	}
	return stack.SavedAt(f.Index, reg, arch)
}

// Roots returns the roots of the frame, or nil if no record at its address is that of a statepoint.
func (f *Frame) Roots() *Roots {
	if out := f.rootsOf(); out != nil {
		return out
	}
	for _, m := range f.others {
		if other, err := f.As(m); err == nil {
			if out := other.rootsOf(); out != nil {
				return out
			}
		}
	}
	return nil
}

// rootsOf returns the roots of the frame's own record.
func (f *Frame) rootsOf() *Roots {
	m := f.match
	if m == nil || m.Kind != ir.StatepointSite && m.Kind != ir.DeoptimizeSite {
		return nil
	}
	sp, ok := m.Entry.Record.AsStatepoint()
	if !ok {
		return nil
	}
	bases := map[frame.Place][]frame.Location{}
	for _, p := range sp.Pairs {
		at := stackmap.LocationOf(m.Entry.Map, p.Derived, f.view.target.Arch())
		bases[at.Place()] = append(bases[at.Place()], stackmap.LocationOf(m.Entry.Map, p.Base, f.view.target.Arch()))
	}
	out := &Roots{Record: f.Record}
	listed := map[frame.Place]bool{}
	for k := range f.Slots {
		s := &f.Slots[k]
		if s.Code == frame.AfterOmitted {
			return &Roots{Record: f.Record, Lost: s}
		}
		if s.GC == nil || !s.GC.Pair || listed[s.Location.Place()] {
			continue
		}
		place := s.Location.Place()
		listed[place] = true
		out.Pointers = append(out.Pointers, RootPointer{*s, len(bases[place]) == 0, bases[place]})
	}
	out.Allocas = f.allocas(sp.Allocas)
	return out
}

// allocas reads the addresses of stack objects.
func (f *Frame) allocas(all []stackmap.Location) (list []frame.Slot) {
	r, doubt := f.Reader(), f.WhyUncertain()
	listed := map[stackmap.Location]bool{}
	for n, l := range all {
		if listed[l] {
			continue
		}
		listed[l] = true
		s := r.slot(len(f.Slots)+n, fmt.Sprintf("alloca%d", n), frame.Type{}, l)
		if doubt != nil && s.Status == frame.OK {
			s.Doubt(doubt)
		}
		list = append(list, s)
	}
	return list
}
