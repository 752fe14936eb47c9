package sites

import (
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
)

// MaxPatch bounds how far before a return address a patchpoint may begin: a region
// that a runtime has patched is decoded up to here.
const MaxPatch = 256

// MaxNear bounds how many records near a place are looked at. Real code has a few; a map
// may claim a million at one address.
const MaxNear = 64

// RecordEntry is a record with what it belongs to, decoded.
type RecordEntry struct {
	stackmap.Entry
	Record *stackmap.Record
}

// KindOf returns the kind that all sites agree on, or "".
func KindOf(sites []*ir.Site) ir.SiteKind {
	if len(sites) == 0 {
		return ""
	}
	for _, s := range sites[1:] {
		if s.Kind != sites[0].Kind {
			return ""
		}
	}
	return sites[0].Kind
}
