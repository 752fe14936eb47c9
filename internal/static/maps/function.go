package maps

import (
	"cmp"
	"iter"
	"slices"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/machine/object"
)

// Function is one function of a map.
type Function struct {
	*stackmap.Function
	Image     *Image
	Map       *stackmap.Map
	Number    int      // of the map in its section, from 0
	Index     int      // of the function in its map, from 0
	Name      string   // as the image spells it; "" where it has no symbol
	Aliases   []string // its other names, as the image spells them
	Source    string   // as a module spells it: without what Mach-O puts before it
	Demangled string   // as its author would spell it; equal to Name if that is not mangled
	// Loose means that this is no function, but holds the records of a map that does not show which of its functions they belong to (version 1).
	Loose bool
	// Code is the start of its code: Addr, except on ppc64 big-endian, where the address of a function is that of its descriptor. CodeKnown is
	// false if the image does not contain it.
	Code      machine.Addr
	CodeKnown bool
}

// Records lists the records, in the order of the section. Each one is reused for the next.
func (f *Function) Records() iter.Seq[*stackmap.Record] {
	if f.Loose {
		return f.Map.Records(nil)
	}
	return f.Map.Records(f.Function)
}

// HasModules reports whether modules were given: all images share what is known of them, so two goroutines must not use it at once.
func (i *Image) HasModules() bool { return i.modules != nil && len(i.modules.All) > 0 }

// Functions lists the functions of all maps of the image, in the order of the section.
func (i *Image) Functions() iter.Seq[*Function] {
	return func(yield func(*Function) bool) {
		if i.Section == nil {
			return
		}
		for number, m := range i.Section.Maps {
			for n := range m.Functions {
				f := &Function{Function: &m.Functions[n], Image: i, Map: m, Number: number, Index: n}
				f.Name, f.Aliases = i.namesOf(m, n)
				f.Source, f.Demangled = f.Name, f.Name
				if i.image != nil {
					f.Source = i.image.SourceName(f.Name)
				}
				if name := names.Demangled(f.Source); name != f.Source {
					f.Demangled = name
				}
				f.Code, f.CodeKnown = f.Addr, true
				if i.image != nil {
					f.Code, f.CodeKnown = i.image.Entry(f.Addr)
				}
				if !yield(f) {
					return
				}
			}
			if m.Unattributed() > 0 && !yield(&Function{Function: new(stackmap.Function), Image: i, Map: m, Number: number, Loose: true}) {
				return
			}
		}
	}
}

// namesOf names function n of a map: by the symbol that the linker is to fill in, or else
// by the symbols that start at its address, of which that comes first which a given module
// defines as a function.
func (i *Image) namesOf(m *stackmap.Map, n int) (name string, aliases []string) {
	var names []string
	if len(i.named) > 0 {
		at, found := slices.BinarySearchFunc(i.named, uint64(m.FunctionPos(&m.Functions[n])),
			func(r object.Relocation, pos uint64) int { return cmp.Compare(r.Offset, pos) })
		if found && i.named[at].Addend == 0 {
			if name := i.named[at].Symbol(); name != "" {
				names = append(names, name)
			}
		}
	}
	if i.image != nil {
		for _, s := range i.image.SymbolsStarting(m.Functions[n].Addr) {
			if !slices.Contains(names, s.Name) {
				names = append(names, s.Name)
			}
		}
	}
	if len(names) == 0 {
		return "", nil
	}
	if i.HasModules() {
		defined := func(name string) bool { return len(i.modules.Definitions(i.image.SourceName(name))) > 0 }
		if k := slices.IndexFunc(names, defined); k > 0 {
			names[0], names[k] = names[k], names[0]
		}
	}
	return names[0], names[1:]
}

// Site returns where a record's site is; false in an unlinked object, whose functions
// have no address.
func (f *Function) Site(rec *stackmap.Record) (machine.Addr, bool) {
	return f.Code + machine.Addr(rec.Offset), f.CodeKnown && !f.Image.Unlinked
}
