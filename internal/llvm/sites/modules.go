package sites

import (
	"slices"
	"strings"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
)

// Modules holds IR modules that the user gave, and cached results about them.
type Modules struct {
	All []*ir.Module
	*findings
}

// findings caches results about modules. All selections of the modules share it.
type findings struct {
	given    []*ir.Module                       // all modules
	Pointer  int                                // size of a pointer of the target in bytes; 0 if unknown
	sitesOf  map[*ir.Func]map[uint64][]*ir.Site // sites by each id that their record may have
	having   map[stackmap.RecordID][]*ir.Func   // functions that have a site with the id; nil until needed
	compared map[comparison]*MismatchError
	held     map[comparison]bool
	Maps     map[*stackmap.Map]*Compiled
	orders   map[ordering]*ordered
	linked   map[*object.Section]*linkedCode
	steps    int // remaining steps for comparing orders

	provenances    map[provenance]Provenance
	computations   map[computation]string         // the reason why the code does not compute the values of the site, or ""
	contradictions map[origin]*Refusal            // nil if the object does not contradict the module
	embedded       map[*object.Image][]*ir.Module // the modules that an image contains

	described map[*ir.Site][]string // source variables that the live values of a site hold

	// MapsInQuestion is set by verbs that look for wrong stack maps. Such a verb reports a map that locates another value than the code computes.
	// Without the flag, the module is not used for this map. The flag matters only if exactly one module fits and the user named it.
	MapsInQuestion bool
	// TrustIR reports whether the user declared that the code was compiled from the module, because the user looks for differences between the two. The
	// module is then used even if the code contradicts it. The flag matters only if exactly one module fits and the user named it.
	TrustIR bool

	// Refuses returns the reason why a function must not name the values of the code at an address of an image, although its sites fit, or "". If nil, only
	// the sites are compared.
	Refuses func(ms *Modules, img *object.Image, start machine.Addr, f *ir.Func) string
}

// comparison is the pair of a module's function and a stack map's function that were compared.
type comparison struct {
	f        *ir.Func
	compiled *stackmap.Function
}

// NewModules returns modules without cached results.
func NewModules(all []*ir.Module) *Modules {
	return &Modules{all, &findings{given: all, sitesOf: map[*ir.Func]map[uint64][]*ir.Site{},
		compared: map[comparison]*MismatchError{}, held: map[comparison]bool{}, Maps: map[*stackmap.Map]*Compiled{},
		orders: map[ordering]*ordered{}, linked: map[*object.Section]*linkedCode{}, steps: maxAllSteps, described: map[*ir.Site][]string{},
		provenances: map[provenance]Provenance{}, contradictions: map[origin]*Refusal{}, computations: map[computation]string{}, embedded: map[*object.Image][]*ir.Module{}}}
}

// Add adds modules that the target provided later.
func (ms *Modules) Add(more []*ir.Module) {
	more = slices.DeleteFunc(slices.Clone(more), func(m *ir.Module) bool { return slices.Contains(ms.given, m) })
	if len(more) == 0 {
		return
	}
	ms.All, ms.given = slices.Concat(ms.All, more), slices.Concat(ms.given, more)
	ms.having = nil
}

// Only returns a selection of the modules.
func (ms *Modules) Only(some []*ir.Module) *Modules { return &Modules{some, ms.findings} }

// Definitions returns the functions with one of these names for which code was emitted, in the order of the modules. Several modules may define one.
func (ms *Modules) Definitions(names ...string) []*ir.Func {
	var list []*ir.Func
	for _, m := range ms.All {
		for _, name := range names {
			if f := Emitted(m, name); f != nil && !slices.Contains(list, f) {
				list = append(list, f)
			}
		}
	}
	return list
}

// Bodies returns the definitions of a function in the order of the modules, including those that are only for inlining.
func (ms *Modules) Bodies(name string) []*ir.Func {
	var list []*ir.Func
	for _, m := range ms.All {
		if f := m.Func(name); f != nil && !f.Declared() {
			list = append(list, f)
		}
	}
	return list
}

// Names returns the names of the functions that the modules define.
func (ms *Modules) Names() []string {
	var list []string
	for _, m := range ms.All {
		for _, f := range m.Funcs {
			if Emits(f) {
				list = append(list, f.Name)
			}
		}
	}
	return list
}

// Emitted returns the function that a module emits under a name or an alias, or nil.
func Emitted(m *ir.Module, name string) *ir.Func {
	f := m.Func(name)
	if f == nil {
		f = Aliased(m, name)
	}
	if f == nil {
		f = undecorated(m, name)
	}
	if f == nil || !Emits(f) {
		return nil
	}
	return f
}

// Aliased returns the function that an alias of a module names, or nil.
func Aliased(m *ir.Module, name string) *ir.Func {
	for _, a := range m.Aliases {
		if a.Name == name && !a.IFunc && a.Target != nil && a.Target.Kind == ir.ConstRef {
			f, _ := a.Target.Target.(*ir.Func)
			return f
		}
	}
	return nil
}

// Emits reports whether the code generator emits a function. One with linkage available_externally is only for inlining (LangRef, "Linkage Types").
func Emits(f *ir.Func) bool { return !f.Declared() && f.Linkage != "available_externally" }

// of returns the sites of a function, by id.
func (ms *Modules) of(f *ir.Func) (map[uint64][]*ir.Site, error) {
	if byID, ok := ms.sitesOf[f]; ok {
		return byID, nil
	}
	all, err := CompiledSites(f)
	if err != nil && !f.Module.Found { // errors in a module that the user did not name are ignored
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

// withID returns the sites of a function with an id.
func (ms *Modules) withID(f *ir.Func, id stackmap.RecordID) ([]*ir.Site, error) {
	byID, err := ms.of(f)
	return byID[uint64(id)], err
}

// Variables returns the source variables that the live values of a site hold.
func (ms *Modules) Variables(s *ir.Site) []string {
	names, known := ms.described[s]
	if !known {
		for _, list := range s.Instr.Variables(s.Live) {
			names = append(names, strings.Join(list, ", "))
		}
		ms.described[s] = names
	}
	return names
}

// with returns the functions of the modules that have a site with an id.
func (ms *Modules) with(id stackmap.RecordID) ([]*ir.Func, error) {
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
		if slices.Contains(ms.All, f.Module) {
			own = append(own, f)
		}
	}
	return own, nil
}

// ByDefault reports whether an id is one that LLVM gives every statepoint without its own id (StatepointDirectives), so that it does not distinguish them.
func ByDefault(id stackmap.RecordID) bool { return id == 0xABCDEF00 || id == 0xABCDEF0F }

// External reports whether a function's name is unique in the whole program (LangRef, "Linkage Types").
func External(f *ir.Func) bool { return f.Linkage == "" || f.Linkage == "external" }
