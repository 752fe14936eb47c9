package maps

import (
	"errors"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/vm/vmlayout"
)

// layoutReads is the rule that layouts of virtual machines can read the records; it needs no module.
var layoutReads = stackmap.Rule{Name: "a layout of a virtual machine reads every record",
	Fact: "tags, counts and keys of an encoding are constants in the record, so it can be read to its last operand whatever the values are"}

// immutable returns the memory that a layout may read to make frames; nil for a file.
func (i *Image) immutable() *vmlayout.Target {
	if i.target == nil {
		return nil
	}
	return vmlayout.OfTarget(i.target, i.image)
}

// checkVM runs layouts over the records of an image. Unless a record has the shape of a statepoint, only a module shows which of its locations are
// live values. Without a module, checkVM passes all locations to the layout, and a failure of the layout is not a violation.
func (i *Image) checkVM(vms []*vmlayout.Layout) stackmap.Result {
	result := stackmap.Result{Rule: layoutReads}
	for n, m := range i.placed().Maps {
		for k := range m.Functions {
			f := &m.Functions[k]
			name := ""
			if i.image != nil {
				if s, ok := i.image.SymbolStarting(f.Addr); ok {
					name = s.Name
				}
			}
			at := -1
			for record := range m.Records(f) {
				at++
				locations, certain := record.Locations, false
				if sp, ok := record.AsStatepoint(); ok {
					locations, certain = sp.Deopt, true
				}
				if len(locations) == 0 {
					continue
				}
				e := sites.RecordEntry{Record: record}
				e.Map = m
				site := vmlayout.OfRecord(nil, nil, e, locations, name, &frame.Record{ID: uint64(record.ID), Site: "unknown"})
				site.Target = i.immutable()
				r := vmlayout.First(vms, site)
				if r.Layout == nil {
					continue // no layout returned frames
				}
				result.Checked++
				if r.Err == nil {
					continue
				}
				var wrong *vmlayout.Error
				if errors.As(r.Err, &wrong) && wrong.NeedsTarget {
					result.AddUnknown("the layout reads memory, which only a process or a core has")
					continue
				}
				if !certain {
					result.AddUnknown("only the module gives the locations of the live values; give it with --ir")
					continue
				}
				what := r.Err.Error()
				if wrong != nil {
					what = wrong.Error()
				}
				result.Add(stackmap.Violation{Map: n, Function: f.Addr, Record: record.ID, Index: at, Pos: record.Pos, What: what})
			}
		}
	}
	return result
}
