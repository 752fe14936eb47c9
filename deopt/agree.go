package deopt

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"reframe/deopt/frame"
	"reframe/deopt/interp"
	"reframe/deopt/ir"
)

// agreed is what all sites that a record may be say of one live value.
type agreed struct {
	first     *ir.Site // the first of them, and what it has there
	value     ir.Value
	same      bool // all have that value, which then has the name everywhere
	typed     bool // all have a value of that type
	constant  bool // all have a constant, and none undef or poison
	undefined bool // all have undef or poison
}

// named says whether it is agreed how the value is called, if that is by nothing.
func (a *agreed) named() bool { return a.same || a.constant || a.undefined }

// role is the name of the value, and for one that the module leaves open, whatever number
// stands in the record, the word for that. It is "" where there is none.
func (a *agreed) role() string {
	switch {
	case a.undefined:
		return a.value.Ref()
	case a.same:
		return name(a.value)
	}
	return ""
}

// spelling is the type as the module spells it, or "".
func (a *agreed) spelling() string {
	if !a.typed {
		return ""
	}
	return a.value.Type().String()
}

// frameType is the type of the slot, or none.
func (a *agreed) frameType() frame.Type {
	if !a.typed {
		return frame.Type{}
	}
	return interp.FrameType(a.first.Func.Module.Layout, a.value.Type())
}

// agreements returns what sites agree on, value by value, or nil where they do not agree on
// which location is which live value.
func agreements(sites []*ir.Site) []agreed {
	if len(sites) == 0 {
		return nil
	}
	first := sites[0]
	for _, s := range sites[1:] {
		if s.Kind != first.Kind || head(s) != head(first) || len(s.Live) != len(first.Live) {
			return nil
		}
	}
	all := make([]agreed, len(first.Live))
	for k := range all {
		all[k] = agree(sites, k)
	}
	return all
}

// agree returns what sites say of live value k.
func agree(sites []*ir.Site, k int) agreed {
	v := sites[0].Live[k]
	out := agreed{sites[0], v, true, true, isConst(v) && !isUndef(v), isUndef(v)}
	for _, s := range sites[1:] {
		other := s.Live[k]
		out.same = out.same && other == v // a name may be that of values in several functions
		out.typed = out.typed && readAlike(sites[0].Func.Module, v.Type(), s.Func.Module, other.Type())
		out.constant = out.constant && isConst(other) && !isUndef(other)
		out.undefined = out.undefined && isUndef(other)
	}
	return out
}

// readAlike says whether values of two types are read and spelled alike.
func readAlike(m *ir.Module, t *ir.Type, n *ir.Module, u *ir.Type) bool {
	if m == n {
		return t.Equal(u)
	}
	return reflect.DeepEqual(interp.FrameType(m.Layout, t), interp.FrameType(n.Layout, u))
}

// agreements returns what the sites of the record agree on. It is found once.
func (m *match) agreements() []agreed {
	if !m.compared {
		m.compared, m.agreed = true, agreements(m.sites)
	}
	return m.agreed
}

// disagreement says that several sites may be that of a record, and what they agree on.
func disagreement(sites []*ir.Site) string {
	names, types, all := 0, 0, agreements(sites)
	for _, a := range all {
		if a.same && name(a.value) != "" {
			names++
		}
		if a.typed {
			types++
		}
	}
	fit := fmt.Sprintf("%d sites of %s fit this record", len(sites), modulesOf(sites))
	agree := fmt.Sprintf("they agree on %s of %s", plural(types, "type"), plural(len(all), "value"))
	remedy := "; give each its own id"
	if several(sites) {
		remedy = "; give only the module that was compiled"
	}
	switch {
	case names > 0:
		agree = fmt.Sprintf("they agree on %s and %s of %s", plural(names, "name"), plural(types, "type"), plural(len(all), "value"))
		return fit + ", and " + agree + remedy
	case types > 0:
		return "no names: " + fit + ", and " + agree + remedy
	}
	return "no names: " + fit + remedy
}

// several says whether sites are of more than one module.
func several(sites []*ir.Site) bool {
	return slices.ContainsFunc(sites, func(s *ir.Site) bool { return s.Func.Module != sites[0].Func.Module })
}

// modulesOf names the modules that sites are in, where they are several.
func modulesOf(sites []*ir.Site) string {
	const named = 3
	var names []string
	seen := map[*ir.Module]bool{}
	for _, s := range sites {
		if m := s.Func.Module; !seen[m] {
			seen[m] = true
			names = append(names, m.Name)
		}
	}
	switch more := len(names) - named; {
	case len(names) < 2:
		return "the module"
	case more > 0:
		return fmt.Sprintf("%s and %s", strings.Join(names[:named], ", "), plural(more, "more module"))
	}
	return strings.Join(names, ", ")
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// fillAgreed makes slots of a record that several sites may be that of: with the types, and the names,
// that all of them have there.
func (f *Frame) fillAgreed(r *reader, all []agreed) {
	found := alignTogether(f.match.sites, f.match.entry)
	for k := range all {
		a := &all[k]
		called := name(a.value)
		if !a.named() {
			called = fmt.Sprintf("loc%d", k)
		}
		slot := frame.Slot{Index: k, Name: called, Type: a.frameType(), Status: frame.Missing}
		if l, ok := found.location(k); ok {
			if a.typed {
				slot = r.operand(k, called, a.first, a.value.Type(), slot.Type, l)
				refuse(&slot, a.value.Type(), l, a.first, r.arch)
			} else {
				slot = r.slot(k, called, slot.Type, l)
			}
			if !a.constant {
				f.suspect(&slot, k, l)
			}
		} else {
			slot.Reason = found.unknown(k, a.value.Type())
		}
		if a.undefined {
			slot.Status, slot.Reason = frame.Undefined, fmt.Sprintf("the module has %s here", a.value.Ref())
			slot.Value, slot.Hex, slot.Bytes = "", "", nil
		}
		f.Slots = append(f.Slots, slot)
	}
	switch {
	case found.moved:
		f.fillMoved(r, &found)
	case found.sp != nil:
		f.fillUnnamed(r, gcLocations(found.sp))
	}
}
