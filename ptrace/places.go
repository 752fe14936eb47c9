package ptrace

import (
	"slices"
	"sort"

	"reframe/deopt/machine"
)

// modulePlace is a mapping of a module.
type modulePlace struct {
	machine.Mapping
	module *Module
}

// places are the mappings of all modules, by address.
type places []modulePlace

func newPlaces(modules []*Module) places {
	var list places
	for _, m := range modules {
		for _, r := range m.maps {
			list = append(list, modulePlace{r, m})
		}
	}
	slices.SortStableFunc(list, func(a, b modulePlace) int {
		switch {
		case a.Start < b.Start:
			return -1
		case a.Start > b.Start:
			return 1
		}
		return 0
	})
	return list
}

// at returns the mapping that addr lies in, or nil.
func (p places) at(addr machine.Addr) *modulePlace {
	i := sort.Search(len(p), func(i int) bool { return p[i].End > addr })
	if i < len(p) && p[i].Contains(addr) {
		return &p[i]
	}
	return nil
}
