package verify

import (
	"fmt"
	"math"
	"slices"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/progspace"
)

// patchedCode returns the reason that the process has other code than was compiled at a statepoint which the run passed, or "". A statepoint without
// a call has nops, over which a runtime may write a call with effects that the module does not describe. In contrast, code that overwrites a stackmap
// or patchpoint leaves the function and runs other code with the same effect.
func patchedCode(v *deopt.View, o *origin, r *interpreted) string {
	reached := sitesPassed(o, r)
	if len(reached) == 0 {
		return ""
	}
	for _, c := range v.Space().All() {
		if c.Records == nil {
			continue
		}
		relevant := map[*stackmap.Function]bool{}
		all := c.Records.Range(0, math.MaxUint64)
		for n := range all.Len() {
			e := sites.RecordEntry{Entry: all.Entry(n), Record: all.Entry(n).Record()}
			name, _, named := c.NameAt(e.Function.Addr)
			if _, known := relevant[e.Function]; !known {
				relevant[e.Function] = !named || slices.ContainsFunc(v.Modules().Definitions(name), func(f *ir.Func) bool {
					return slices.ContainsFunc(reached, func(s *ir.Site) bool { return s.Func == f })
				})
			}
			if !relevant[e.Function] {
				continue
			}
			sites, err := v.Modules().OfRecord(c, e, name)
			if err != nil {
				continue
			}
			for _, s := range sites.Sites {
				if !slices.ContainsFunc(reached, func(at *ir.Site) bool { return at.Instr == s.Instr }) {
					continue
				}
				if differ := patchedBytes(v, s, e); differ > 0 {
					return fmt.Sprintf("the nops of the statepoint of record %d of @%s were patched: %d of %d bytes differ from the compiled ones, and the module does not describe their effect",
						uint64(e.Record.ID), s.Func.Name, differ, s.PatchBytes)
				}
			}
		}
	}
	return ""
}

// sitesPassed returns the patchable statepoints that the run reached or may have reached. For a block that the run left early, it returns all of
// them.
func sitesPassed(o *origin, r *interpreted) (reached []*ir.Site) {
	m := o.frame.Match()
	of := map[*ir.Func][]*ir.Site{}
	for _, b := range r.machine.Profile() {
		siteList, known := of[b.Block.Func]
		if !known {
			siteList, _ = b.Block.Func.Sites() // ignore the error: without sites the function has no known record
			of[b.Block.Func] = siteList
		}
		for _, s := range siteList {
			if s.Instr.Block != b.Block || s.PatchBytes == 0 || !sites.RecordsStatepoint(s) {
				continue
			}
			if at := m.Site; !o.entry && at != nil && at.Instr.Block == b.Block && b.Runs <= 1 {
				// The run began in this block, at the site of the exit or after it.
				if s.Instr.Index < at.Instr.Index || s.Instr == at.Instr && m.Moment == frame.After {
					continue
				}
			}
			reached = append(reached, s)
		}
	}
	return reached
}

// patchedBytes counts the patch bytes before a statepoint's return address that certainly differ from the compiled code.
func patchedBytes(v *deopt.View, s *ir.Site, e sites.RecordEntry) int {
	n := machine.Addr(min(s.PatchBytes, progspace.MaxOriginal))
	if e.Addr < n {
		return 0
	}
	o, err := v.Space().Original(e.Addr-n, int(n))
	if err != nil {
		return 0
	}
	return o.Differing(e.Addr-n, e.Addr)
}
