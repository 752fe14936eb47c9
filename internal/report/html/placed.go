package html

import (
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/sites"
)

// placed returns for each shown value the number of its location in the record, or -1. A location is assigned to a value only if it equals the
// value's location, so that no link is wrong.
func (at *Place) placed(shown int) []int {
	out := make([]int, shown)
	m := at.frame.Match()
	if m == nil {
		return out
	}
	rec, arch := m.Entry.Record, at.frame.View().Target().Arch()
	at.Locations = len(rec.Locations)
	same := func(k, n int) bool {
		l := at.Place.Values[k].Location
		return l != nil && n >= 0 && n < len(rec.Locations) && sameLocation(l, new(stackmap.LocationOf(m.Entry.Map, rec.Locations[n], arch)))
	}
	var a *sites.Alignment
	switch {
	case m.Site != nil:
		found, _ := sites.Align(m.Site, m.Entry)
		a = &found
	case sites.Agreements(m.Sites) != nil:
		found := sites.AlignTogether(m.Sites, m.Entry)
		a = &found
	}
	next := 0 // the first location that is not assigned yet, for values in order
	switch _, ok := rec.AsStatepoint(); {
	case a != nil && a.Statepoint != nil:
		next = a.First + len(a.Statepoint.Deopt)
	case a != nil:
		next = a.First + a.Head + a.Live
	case ok && len(at.Place.Values) != len(rec.Locations):
		next = stackmap.StatepointHead
	}
	for k := range out {
		out[k] = -1
		if a != nil && k < a.Live {
			if n := a.Place(k); n >= 0 && same(k, a.First+n) {
				out[k] = a.First + n
			}
			continue
		}
		for n := next; n < min(len(rec.Locations), next+maxSkipped); n++ {
			if same(k, n) {
				out[k], next = n, n+1
				break
			}
		}
	}
	return out
}

// maxSkipped bounds the locations that are skipped because they belong to no other value: a statepoint's record may list a pointer more than once.
const maxSkipped = 256

// sameLocation reports whether two locations are equal.
func sameLocation(a, b *frame.Location) bool {
	sameRegister := (a.DWARF == nil) == (b.DWARF == nil) && (a.DWARF == nil || *a.DWARF == *b.DWARF)
	return sameRegister && a.Kind == b.Kind && a.Offset == b.Offset && a.Size == b.Size && a.Constant == b.Constant
}
