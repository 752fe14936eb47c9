package deopt

import (
	"slices"
	"strings"

	"reframe/deopt/ir"
	"reframe/deopt/object"
	"reframe/deopt/stackmap"
)

// modules are IR modules that the user gave, and what was found out about them.
type modules struct {
	all []*ir.Module
	*findings
}

// findings are what was found out about modules, whichever of them are asked about.
type findings struct {
	given    []*ir.Module                       // all
	pointer  int                                // bytes of a pointer of the code that they are held against; 0 where that is not known
	sitesOf  map[*ir.Func]map[uint64][]*ir.Site // by each id that the record may have
	having   map[stackmap.RecordID][]*ir.Func   // nil until it is asked for
	compared map[comparison]*MismatchError
	held     map[comparison]bool
	maps     map[*stackmap.Map]*compiled
	orders   map[ordering]*ordered
	linked   map[*object.Section]*linkedCode
	steps    int // that are left to compare orders by

	described map[*ir.Site][]string // the variables of the live values of each site
}

// comparison is a function of a module and one of a stack map that were held against
// each other.
type comparison struct {
	f        *ir.Func
	compiled *stackmap.Function
}

func newModules(all []*ir.Module) *modules {
	return &modules{all, &findings{given: all, sitesOf: map[*ir.Func]map[uint64][]*ir.Site{},
		compared: map[comparison]*MismatchError{}, held: map[comparison]bool{}, maps: map[*stackmap.Map]*compiled{},
		orders: map[ordering]*ordered{}, linked: map[*object.Section]*linkedCode{}, steps: maxAllSteps, described: map[*ir.Site][]string{}}}
}

// only returns some of the modules.
func (ms *modules) only(some []*ir.Module) *modules { return &modules{some, ms.findings} }

// definitions lists the functions of any of the names for which code was emitted, in the
// order of the modules: two of them may each have one.
func (ms *modules) definitions(names ...string) []*ir.Func {
	var list []*ir.Func
	for _, m := range ms.all {
		for _, name := range names {
			if f := emitted(m, name); f != nil && !slices.Contains(list, f) {
				list = append(list, f)
			}
		}
	}
	return list
}

// bodies lists the definitions of a function, in the order of the modules, and with them
// those that are there to be inlined alone.
func (ms *modules) bodies(name string) []*ir.Func {
	var list []*ir.Func
	for _, m := range ms.all {
		if f := m.Func(name); f != nil && !f.Declared() {
			list = append(list, f)
		}
	}
	return list
}

// names lists the functions that the modules define.
func (ms *modules) names() []string {
	var list []string
	for _, m := range ms.all {
		for _, f := range m.Funcs {
			if emits(f) {
				list = append(list, f.Name)
			}
		}
	}
	return list
}

// emitted returns the function for which a module has code under a name, its own or an
// alias, or nil.
func emitted(m *ir.Module, name string) *ir.Func {
	f := m.Func(name)
	if f == nil {
		f = aliased(m, name)
	}
	if f == nil {
		f = undecorated(m, name)
	}
	if f == nil || !emits(f) {
		return nil
	}
	return f
}

// aliased returns the function that a module has an alias for, or nil.
func aliased(m *ir.Module, name string) *ir.Func {
	for _, a := range m.Aliases {
		if a.Name == name && !a.IFunc && a.Target != nil && a.Target.Kind == ir.ConstRef {
			f, _ := a.Target.Target.(*ir.Func)
			return f
		}
	}
	return nil
}

// emits says whether the code generator writes a function. An available_externally one is
// there to be inlined (LangRef, "Linkage Types").
func emits(f *ir.Func) bool { return !f.Declared() && f.Linkage != "available_externally" }

// of returns the sites of a function by their ids.
func (ms *modules) of(f *ir.Func) (map[uint64][]*ir.Site, error) {
	if byID, ok := ms.sitesOf[f]; ok {
		return byID, nil
	}
	all, err := compiledSites(f)
	if err != nil && !f.Module.Found { // of what nobody named, a part that cannot be read says nothing
		return nil, err
	}
	byID := map[uint64][]*ir.Site{}
	for _, s := range all {
		for _, id := range s.IDs() {
			byID[id] = append(byID[id], s)
		}
	}
	ms.sitesOf[f] = byID
	return byID, nil
}

// withID returns the sites of a function that have an id.
func (ms *modules) withID(f *ir.Func, id stackmap.RecordID) ([]*ir.Site, error) {
	byID, err := ms.of(f)
	return byID[uint64(id)], err
}

// variables names the variables of the source that the live values of a site are.
func (ms *modules) variables(s *ir.Site) []string {
	names, known := ms.described[s]
	if !known {
		for _, list := range s.Instr.Variables(s.Live) {
			names = append(names, strings.Join(list, ", "))
		}
		ms.described[s] = names
	}
	return names
}

// with lists the functions of the modules that have a site with an id.
func (ms *modules) with(id stackmap.RecordID) ([]*ir.Func, error) {
	if ms.having == nil {
		having := map[stackmap.RecordID][]*ir.Func{}
		for _, m := range ms.given {
			for _, f := range m.Funcs {
				byID, err := ms.of(f)
				if err != nil {
					return nil, err
				}
				for id := range byID {
					having[stackmap.RecordID(id)] = append(having[stackmap.RecordID(id)], f)
				}
			}
		}
		ms.having = having
	}
	var own []*ir.Func
	for _, f := range ms.having[id] {
		if slices.Contains(ms.all, f.Module) {
			own = append(own, f)
		}
	}
	return own, nil
}

// byDefault says that an id is one that LLVM gives to every statepoint that asks for none
// (StatepointDirectives): it tells nothing apart.
func byDefault(id stackmap.RecordID) bool { return id == 0xABCDEF00 || id == 0xABCDEF0F }

// external says whether a function's name is that of one function in a whole program
// (LangRef, "Linkage Types").
func external(f *ir.Func) bool { return f.Linkage == "" || f.Linkage == "external" }
