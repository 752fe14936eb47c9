package verify

import (
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/llvm/ir"
)

// recordIsTrue reports whether the record of an exit holds the values that the function's own IR computes: those of the site's operands at some
// arrival of the run from the entry. known is false if this cannot be decided. values holds the live values at that arrival, or at the nearest one.
func (p *prediction) recordIsTrue(exit *prediction) (is, known bool, wrong []SlotDifference, values map[string]interp.Value) {
	f := exit.origin.frame
	site := f.Match().Site
	if site == nil || site.Func != p.origin.fn {
		return false, false, nil, nil
	}
	var of []ir.Value
	var have []interp.Value
	for _, s := range f.Slots {
		if s.Status != frame.OK || s.Index < 0 || s.Index >= len(site.Live) {
			continue
		}
		value := site.Live[s.Index]
		if _, constant := value.(*ir.Const); constant {
			continue
		}
		if has, err := interp.FromBytes(p.origin.fn.Module.Layout, value.Type(), s.Bytes); err == nil {
			of, have = append(of, value), append(have, has)
		}
	}
	least := -1
	var nearest *arrival
	why := p.reruns.each(site.Instr, of, func(a *arrival) bool {
		known = true
		var differ []SlotDifference
		for n, want := range a.values {
			if !want.IsNone() && !want.made && !abi.SameBits(want.Value, have[n]) {
				differ = append(differ, SlotDifference{Slot: of[n].Ref(), Exit: have[n].Format(), Baseline: want.Format()})
			}
		}
		if least < 0 || len(differ) < least {
			least, wrong, nearest = len(differ), differ, a
			if a.run != nil {
				values = liveAt(a.run.x, p.origin.fn)
			}
		}
		return least > 0
	})
	if nearest != nil && nearest.run == nil && p.reruns.runTo(site.Instr, nearest) == nil {
		values = liveAt(nearest.run.x, p.origin.fn)
	}
	return least == 0, known && why == nil, wrong, values
}

// maxLive bounds the number of values of a function that are compared.
const maxLive = 10_000

// liveAt returns the values of an activation by name.
func liveAt(x *interp.Execution, fn *ir.Func) map[string]interp.Value {
	values := map[string]interp.Value{}
	add := func(value ir.Value) {
		if v, ok := x.Value(0, value); ok && len(values) < maxLive {
			values[value.Ref()] = v
		}
	}
	for _, param := range fn.Params {
		add(param)
	}
	body, err := fn.Body()
	if err != nil {
		return values
	}
	for _, b := range body {
		for _, i := range b.Instrs {
			if i.Typ != nil && i.Typ.First() {
				add(i)
			}
		}
	}
	return values
}
