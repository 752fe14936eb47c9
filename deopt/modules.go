package deopt

import (
	"reframe/deopt/ir"
	"reframe/deopt/stackmap"
)

// modules are the IR modules that the user gave, and what was found out about them.
type modules struct {
	all      []*ir.Module
	sitesOf  map[*ir.Func]map[uint64][]*ir.Site // by id
	having   map[stackmap.RecordID][]*ir.Func   // nil until it is asked for
	compared map[comparison]*MismatchError
	held     map[comparison]bool
}

// comparison is a function of a module and one of a stack map that were held against
// each other.
type comparison struct {
	f        *ir.Func
	compiled *stackmap.Function
}

func newModules(all []*ir.Module) *modules {
	return &modules{all: all, sitesOf: map[*ir.Func]map[uint64][]*ir.Site{},
		compared: map[comparison]*MismatchError{}, held: map[comparison]bool{}}
}

// definitions lists the definitions of a function, in the order of the modules: two of
// them may each have one.
func (ms *modules) definitions(name string) []*ir.Func {
	var list []*ir.Func
	for _, m := range ms.all {
		if f := m.Func(name); f != nil && !f.Declared() {
			list = append(list, f)
		}
	}
	return list
}

// of returns the sites of a function by their ids.
func (ms *modules) of(f *ir.Func) (map[uint64][]*ir.Site, error) {
	if byID, ok := ms.sitesOf[f]; ok {
		return byID, nil
	}
	all, err := f.Sites()
	if err != nil {
		return nil, err
	}
	byID := map[uint64][]*ir.Site{}
	for _, s := range all {
		byID[s.ID] = append(byID[s.ID], s)
	}
	ms.sitesOf[f] = byID
	return byID, nil
}

// withID returns the sites of a function that have an id.
func (ms *modules) withID(f *ir.Func, id stackmap.RecordID) ([]*ir.Site, error) {
	byID, err := ms.of(f)
	return byID[uint64(id)], err
}

// with lists the functions that have a site with an id.
func (ms *modules) with(id stackmap.RecordID) ([]*ir.Func, error) {
	if ms.having == nil {
		having := map[stackmap.RecordID][]*ir.Func{}
		for _, m := range ms.all {
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
	return ms.having[id], nil
}

// byDefault says that an id is one that LLVM gives to every statepoint that asks for none
// (StatepointDirectives): it tells nothing apart.
func byDefault(id stackmap.RecordID) bool { return id == 0xABCDEF00 || id == 0xABCDEF0F }
