package sites

import (
	"fmt"
	"reflect"
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
)

// Agreed describes the properties that all candidate sites of a record share for one live value.
type Agreed struct {
	First     *ir.Site // the first site, and its value
	Value     ir.Value
	same      bool // all sites have this value, so its name is certain
	Typed     bool // all values have this type
	Constant  bool // all values are constants other than undef and poison
	Undefined bool // all values are undef or poison
}

// Named reports whether all sites give the value the same name, or all give it none.
func (a *Agreed) Named() bool { return a.same || a.Constant || a.Undefined }

// Role returns the name of the value, or "". For a value that is undef or poison in the module it returns that word, even if the record has a number.
func (a *Agreed) Role() string {
	switch {
	case a.Undefined:
		return a.Value.Ref()
	case a.same:
		return NameOf(a.Value)
	}
	return ""
}

// Spelling returns the type as the module writes it, or "".
func (a *Agreed) Spelling() string {
	if !a.Typed {
		return ""
	}
	return a.Value.Type().String()
}

// FrameType returns the type of the slot, or the zero value.
func (a *Agreed) FrameType() frame.Type {
	if !a.Typed {
		return frame.Type{}
	}
	return interp.FrameType(a.First.Func.Module.Layout, a.Value.Type())
}

// Agreements returns the properties that the sites share for each live value, or nil if they assign the locations to different live values.
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

// agree returns the properties that the sites share for live value k.
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

// sameName reports whether two modules give a value of the same function the same name. Within one module equal names do not suffice: values of several
// functions may have the same name.
func sameName(f *ir.Func, v ir.Value, g *ir.Func, u ir.Value) bool {
	return f.Module != g.Module && f.Name == g.Name && NameOf(v) != "" && NameOf(v) == NameOf(u)
}

// readAlike reports whether values of two types are decoded and printed alike.
func readAlike(m *ir.Module, t *ir.Type, n *ir.Module, u *ir.Type) bool {
	if m == n {
		return t.Equal(u)
	}
	return reflect.DeepEqual(interp.FrameType(m.Layout, t), interp.FrameType(n.Layout, u))
}

// disagreement returns a note that several sites fit a record, and the properties that they share.
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
	fit := fmt.Sprintf("%d sites of %s match this record", len(sites), modulesOf(sites))
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

// modulesOf returns the names of the sites' modules as text, or "the module" if there is only one.
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

// Plural returns a count with its noun in the singular or plural.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
