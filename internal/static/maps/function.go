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

// Function is a function of a map.
type Function struct {
	*stackmap.Function
	Image     *Image
	Map       *stackmap.Map
	Number    int      // number of the map in its section, from 0
	Index     int      // index of the function in its map, from 0
	Name      string   // as the image spells it; "" if it has no symbol
	Aliases   []string // other names, as the image spells them
	Source    string   // as a module spells it: without the prefix of Mach-O
	Demangled string   // as in the source language; equal to Name if that is not mangled
	// Loose is set if this is not a function but a list of records: those of a map of version 1, which does not show to which function a record belongs.
	Loose bool
	// Code is the start of its code: Addr, except on ppc64 big-endian, where Addr is that of the descriptor. CodeKnown is false if the image does not
	// contain the code.
	Code      machine.Addr
	CodeKnown bool
}

// Records yields the records in the order of the section. It reuses one Record for all of them.
func (f *Function) Records() iter.Seq[*stackmap.Record] {
	if f.Loose {
		return f.Map.Records(nil)
	}
	return f.Map.Records(f.Function)
}

// HasModules reports whether modules were given. All images share their modules, so two goroutines must not use images with modules at the same time.
func (i *Image) HasModules() bool { return i.modules != nil && len(i.modules.All) > 0 }

// Functions yields the functions of all maps of the image, in the order of the section.
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

// namesOf returns the names of function n of a map: the symbol of its relocation, or else the symbols that start at its address. A symbol that a
// given module defines as a function comes first.
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

// Site returns the address of a record's site; ok is false in an unlinked object, whose functions have no address.
func (f *Function) Site(rec *stackmap.Record) (machine.Addr, bool) {
	return f.Code + machine.Addr(rec.Offset), f.CodeKnown && !f.Image.Unlinked
}
