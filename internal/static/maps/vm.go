package maps

import (
	"cmp"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/vm/vmlayout"
)

// HasLayouts reports whether layouts of virtual machines were given.
func (i *Image) HasLayouts() bool { return len(i.vms) > 0 }

// VM returns the VM frames that the given layouts make of a record of the function; nil without layouts. r is the reading of the record.
func (f *Function) VM(rec *stackmap.Record, r *Reading) *vmlayout.Outline {
	if !f.Image.HasLayouts() {
		return nil
	}
	vms := vmlayout.For(f.Image.image, f.Image.vms)
	var only *ir.Site
	var recorded []stackmap.Location
	switch {
	case len(r.Sites) == 1:
		only = r.Sites[0]
	case r.Names != nil:
	case len(r.Sites) == 0 && r.statepoint:
		recorded = r.sp.Deopt
	case len(rec.Locations) > 0:
		return vmlayout.Uncounted(vms, uint64(rec.ID)).Outline(nil)
	}
	e := sites.RecordEntry{Entry: stackmap.Entry{Map: f.Map, Function: f.Function}, Record: rec}
	site := vmlayout.OfRecord(only, r.Sites, e, recorded, f.Source, &frame.Record{ID: uint64(rec.ID), Site: cmp.Or(r.Kind, "unknown")})
	site.Target = f.Image.immutable()
	return vmlayout.First(vms, site).Outline(site)
}
