package vmlayout

import (
	"cmp"
	"fmt"

	"example.com/reframe/deopt/frame"
)

// Misfit is a mismatch between a shape and a module.
type Misfit struct {
	Kind MisfitKind
	// Of holds the types or the error of the mismatch. Two mismatches with the same Kind and Of come from the same mistake of the layout.
	Of   string
	Text string
}

// MisfitKind is a kind of mismatch.
type MisfitKind int

// The kinds of mismatches.
const (
	UndefOperand     MisfitKind = iota
	UnlistedOperand             // a reference that the collector does not know
	DerivedOperand              // a pointer into an object
	OperandType                 // an operand of an impossible type
	NumberAsOwner               // a lock whose owner is a number
	NamelessConstant            // a method or class that the layout cannot name
	InfoFails                   // info returns an error for the position of a frame
	InfoDiffers                 // info for the position of a frame describes another one
)

// Misfits lists mismatches between a shape and a module. It also lists differences between info for a position and the frame there.
func (s *Shape) Misfits(site *Site) (list []Misfit) {
	s.places(func(where string, v *Value) {
		if v.Kind != OperandValue || v.Operand >= len(site.Operands) {
			return
		}
		o := &site.Operands[v.Operand]
		name := fmt.Sprintf("%s, operand %d", where, v.Operand)
		if o.Name != "" {
			name += " (" + o.Name + ")"
		}
		switch {
		case o.Undef:
			list = append(list, Misfit{UndefOperand, "", name + ": it is undef or poison in the module; mark a dead place with dead()"})
		case v.As == "ref" && o.Pair == Unpaired:
			list = append(list, Misfit{UnlistedOperand, "", name + ": a reference that the statepoint does not list for the collector"})
		case v.As == "ref" && o.Pair == Derived:
			list = append(list, Misfit{DerivedOperand, "", name + ": a pointer into an object; expected a reference to one"})
		}
		if err := misfit(v, o.Type); err != nil {
			list = append(list, Misfit{OperandType, o.Type.Source + " " + v.As, fmt.Sprintf("%s: %v", name, err)})
		}
	})
	for n := range s.Frames {
		for k := range s.Frames[n].Monitors {
			if v := &s.Frames[n].Monitors[k].Owner; v.Kind == OperandValue && v.As != "ref" && v.Codec == nil && v.Operand < len(site.Operands) {
				if o := &site.Operands[v.Operand]; v.As != "" || o.Type.Kind == frame.Int || o.Type.Kind == frame.Float {
					list = append(list, Misfit{NumberAsOwner, "", fmt.Sprintf("lock %d of frame %d, operand %d (%s): its owner is a number (%s); expected a reference", k, n, v.Operand, o.Name, cmp.Or(v.As, o.Type.Source))})
				}
			}
		}
	}
	return append(list, s.expected(site)...)
}

// misfit returns the reason why an operand of a type cannot be the value that the layout reads, or nil.
func misfit(v *Value, t frame.Type) error {
	if t.IsZero() {
		return nil
	}
	if v.Extend != "" {
		return v.unwidened(t)
	}
	want := v.As
	if v.Codec != nil && want == "" {
		if t.Kind == frame.Float || t.Bits > 64 || t.Composite() {
			return fmt.Errorf("it is %s, but the layout decodes bits", t.Source)
		}
		return nil
	}
	switch as := plain[want]; {
	case want == "":
	case t.Composite() || t.Bits < as.Bits:
		return fmt.Errorf("it is %s, but %s in the layout", t.Source, want)
	case t.Kind == frame.Int && as.Kind == frame.Float && t.Bits != as.Bits:
		return fmt.Errorf("it is %s, but %s in the layout", t.Source, want)
	case t.Kind == frame.Float && (as.Kind != frame.Float || as.Bits != t.Bits):
		return fmt.Errorf("it is %s, but %s in the layout", t.Source, want)
	case t.Kind == frame.Pointer && as.Kind == frame.Float:
		return fmt.Errorf("it is %s, but %s in the layout", t.Source, want)
	}
	return nil
}
