package sites

import (
	"reframe/deopt/ir"
	"reframe/deopt/stackmap"
)

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
