package maps

import (
	"slices"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/names"
)

// Filter selects records. Its zero value selects all.
type Filter struct {
	Name    *names.Pattern // matches the name of the function; nil: any
	IDs     []uint64       // ids of records; nil: any
	Address *machine.Addr  // address of the site; nil: any
}

// All reports whether the filter selects every record.
func (w *Filter) All() bool { return w.Name == nil && w.IDs == nil && w.Address == nil }

// Function reports whether the filter may select records of f.
func (w *Filter) Function(f *Function) bool {
	return w.Name == nil || w.Name.MatchAny(f.Name, f.Source) || w.Name.MatchAny(f.Aliases...)
}

// Record reports whether the filter selects a record of a selected function.
func (w *Filter) Record(f *Function, rec *stackmap.Record) bool {
	if w.IDs != nil && !slices.Contains(w.IDs, uint64(rec.ID)) {
		return false
	}
	if w.Address == nil {
		return true
	}
	addr, linked := f.Site(rec)
	return linked && addr == *w.Address
}

// Nearest returns the record of all images whose site is nearest to an address; ok is false if no site has an address.
func (m *Maps) Nearest(addr machine.Addr) (nearest stackmap.Entry, ok bool) {
	distance := func(e stackmap.Entry) uint64 { return min(uint64(e.Addr-addr), uint64(addr-e.Addr)) }
	for _, i := range m.Images {
		if i.Section == nil || i.Unlinked {
			continue
		}
		e, some := stackmap.NewIndex(i.Section.Maps...).Nearest(addr)
		if some && (!ok || distance(e) < distance(nearest)) {
			nearest, ok = e, true
		}
	}
	return nearest, ok
}
