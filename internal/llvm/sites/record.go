package sites

import (
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
)

// MaxPatch limits how far before a return address a patchpoint may begin. A region that a runtime has patched is decoded up to this size.
const MaxPatch = 256

// MaxNear limits the records near an address that are examined. Real code has a few; a hostile map may claim a million at one address.
const MaxNear = 64

// RecordEntry is a decoded record with its map and function.
type RecordEntry struct {
	stackmap.Entry
	Record *stackmap.Record
}

// KindOf returns the kind of the sites if they have the same, or "".
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
