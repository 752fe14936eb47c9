package vmlayout

import (
	"cmp"
	"fmt"

	"example.com/reframe/deopt/frame"
)

// Misfits lists mismatches between a shape and a module: operands of an impossible type, references that the collector does not know, derived
// pointers instead of objects, undef instead of a value. It also lists differences between info for a position and the frame there.
func (s *Shape) Misfits(site *Site) (list []string) {
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
			list = append(list, name+": it is undef or poison in the module; mark a dead place with dead()")
		case v.As == "ref" && o.Pair == Unpaired:
			list = append(list, name+": a reference that the statepoint does not list for the collector")
		case v.As == "ref" && o.Pair == Derived:
			list = append(list, name+": a pointer into an object; expected a reference to one")
		}
		if why := misfit(v, o.Type); why != "" {
			list = append(list, name+": "+why)
		}
	})
	for n := range s.Frames {
		for k := range s.Frames[n].Monitors {
			if v := &s.Frames[n].Monitors[k].Owner; v.Kind == OperandValue && v.As != "ref" && v.Codec == nil && v.Operand < len(site.Operands) {
				if o := &site.Operands[v.Operand]; v.As != "" || o.Type.Kind == frame.Int || o.Type.Kind == frame.Float {
					list = append(list, fmt.Sprintf("lock %d of frame %d, operand %d (%s): its owner is a number (%s); expected a reference", k, n, v.Operand, o.Name, cmp.Or(v.As, o.Type.Source)))
				}
			}
		}
	}
	return append(list, s.expected(site)...)
}

// misfit returns the reason why an operand of a type cannot be the value that the layout reads, or "".
func misfit(v *Value, t frame.Type) string {
	if t.IsZero() {
		return ""
	}
	if v.Extend != "" {
		return v.unwidened(t)
	}
	want := v.As
	if v.Codec != nil && want == "" {
		if t.Kind == frame.Float || t.Bits > 64 || t.Composite() {
			return "it is " + t.Source + ", but the layout decodes bits"
		}
		return ""
	}
	switch as := plain[want]; {
	case want == "":
	case t.Composite() || t.Bits < as.Bits:
		return fmt.Sprintf("it is %s, but %s in the layout", t.Source, want)
	case t.Kind == frame.Int && as.Kind == frame.Float && t.Bits != as.Bits:
		return fmt.Sprintf("it is %s, but %s in the layout", t.Source, want)
	case t.Kind == frame.Float && (as.Kind != frame.Float || as.Bits != t.Bits):
		return fmt.Sprintf("it is %s, but %s in the layout", t.Source, want)
	case t.Kind == frame.Pointer && as.Kind == frame.Float:
		return fmt.Sprintf("it is %s, but %s in the layout", t.Source, want)
	}
	return ""
}
