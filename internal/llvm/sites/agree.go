package sites

import (
	"fmt"
	"reflect"
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
)

// Agreed describes what all candidate sites of a record have in common in one live value.
type Agreed struct {
	First     *ir.Site // the first of them, and its value there
	Value     ir.Value
	same      bool // all have that value, which then has the name everywhere
	Typed     bool // all have a value of that type
	Constant  bool // all have a constant, and none undef or poison
	Undefined bool // all have undef or poison
}

// Named reports whether it is agreed how the value is called, if that is by nothing.
func (a *Agreed) Named() bool { return a.same || a.Constant || a.Undefined }

// Role returns the name of the value, or undef or poison for one that the module leaves undefined, whatever number is in the record. It is "" if
// there is no name.
func (a *Agreed) Role() string {
	switch {
	case a.Undefined:
		return a.Value.Ref()
	case a.same:
		return NameOf(a.Value)
	}
	return ""
}

// Spelling is the type as the module spells it, or "".
func (a *Agreed) Spelling() string {
	if !a.Typed {
		return ""
	}
	return a.Value.Type().String()
}

// FrameType is the type of the slot, or none.
func (a *Agreed) FrameType() frame.Type {
	if !a.Typed {
		return frame.Type{}
	}
	return interp.FrameType(a.First.Func.Module.Layout, a.Value.Type())
}

// Agreements returns what the sites have in common, value by value, or nil if they do not agree on which location is which live value.
func Agreements(sites []*ir.Site) []Agreed {
	if len(sites) == 0 {
		return nil
	}
	first := sites[0]
	for _, s := range sites[1:] {
		if s.Kind != first.Kind || head(s) != head(first) || len(s.Live) != len(first.Live) {
			return nil
		}
	}
	all := make([]Agreed, len(first.Live))
	for k := range all {
		all[k] = agree(sites, k)
	}
	return all
}

// agree returns what the sites have in common in live value k.
func agree(sites []*ir.Site, k int) Agreed {
	v := sites[0].Live[k]
	out := Agreed{sites[0], v, true, true, IsConst(v) && !IsUndef(v), IsUndef(v)}
	for _, s := range sites[1:] {
		other := s.Live[k]
		out.same = out.same && (other == v || sameName(sites[0].Func, v, s.Func, other))
		out.Typed = out.Typed && readAlike(sites[0].Func.Module, v.Type(), s.Func.Module, other.Type())
		out.Constant = out.Constant && IsConst(other) && !IsUndef(other)
		out.Undefined = out.Undefined && IsUndef(other)
	}
	return out
}

// sameName reports whether two modules give a value of the same function the same name. In one module, values in several functions may share a
// name.
func sameName(f *ir.Func, v ir.Value, g *ir.Func, u ir.Value) bool {
	return f.Module != g.Module && f.Name == g.Name && NameOf(v) != "" && NameOf(v) == NameOf(u)
}

// readAlike reports whether values of two types are read and spelled alike.
func readAlike(m *ir.Module, t *ir.Type, n *ir.Module, u *ir.Type) bool {
	if m == n {
		return t.Equal(u)
	}
	return reflect.DeepEqual(interp.FrameType(m.Layout, t), interp.FrameType(n.Layout, u))
}

// disagreement reports that several sites fit a record, and what they have in common.
func disagreement(sites []*ir.Site) string {
	names, types, all := 0, 0, Agreements(sites)
	for _, a := range all {
		if a.same && NameOf(a.Value) != "" {
			names++
		}
		if a.Typed {
			types++
		}
	}
	fit := fmt.Sprintf("%d sites of %s fit this record", len(sites), modulesOf(sites))
	agree := fmt.Sprintf("they agree on %s of %s", Plural(types, "type"), Plural(len(all), "value"))
	remedy := "; give each its own id"
	if several(sites) {
		remedy = "; give only the module that was compiled"
	}
	switch {
	case names > 0:
		agree = fmt.Sprintf("they agree on %s and %s of %s", Plural(names, "name"), Plural(types, "type"), Plural(len(all), "value"))
		return fit + ", and " + agree + remedy
	case types > 0:
		return "no names: " + fit + ", and " + agree + remedy
	}
	return "no names: " + fit + remedy
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
		return fmt.Sprintf("%s and %s", strings.Join(names[:named], ", "), Plural(more, "more module"))
	}
	return strings.Join(names, ", ")
}

// Plural counts things in English.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
