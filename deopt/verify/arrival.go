package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"reframe/deopt/abi"
	"reframe/deopt/frame"
	"reframe/deopt/interp"
	"reframe/deopt/ir"
	"reframe/deopt/machine"
)

// maxArrivals bounds how often a run is looked at at one place.
const maxArrivals = 100_000

// SlotDifference is a slot of an exit whose value the baseline does not have where the exit resumes.
type SlotDifference struct {
	Slot     string `json:"slot"`
	Exit     string `json:"exit"`
	Baseline string `json:"baseline"`
	// In is another slot of the exit, or a value of the function that was left, that is what the baseline has.
	In string `json:"in,omitempty"`
	// Of says whose In is: "slot", or "value" of the function that was left.
	Of string `json:"of,omitempty"`
}

// State is how the state at an exit is held against a run from the entry.
type State struct {
	Arrivals uint64 `json:"arrivals"`          // how often the run came there
	Arrival  uint64 `json:"arrival,omitempty"` // the first of them, from 1, that is not before the one of the exit before and has the same state; 0: none has
	Nearest  uint64 `json:"nearest,omitempty"` // else the one that differs in the fewest slots
	// Slots are those that differ in the nearest one, Words how many words of eight bytes of memory do, and Memory the first place.
	Slots  []SlotDifference  `json:"slots,omitempty"`
	Words  uint64            `json:"memory_words,omitempty"`
	Memory *MemoryDifference `json:"memory,omitempty"`
	Why    string            `json:"why,omitempty"` // it could not be held against it
}

// same says that the run had the state of the exit, once.
func (s *State) same() bool { return s.Why == "" && s.Arrival > 0 }

// different says that it never had.
func (s *State) different() bool { return s.Why == "" && s.Arrival == 0 }

// visit runs what began at an entry, or an exit, once more, as far as native code has come, and calls look whenever it comes before an
// instruction of the function that was entered or left: where an exit resumes only when it comes there again. look's answer says to go on.
func (p *prediction) visit(v *verifier, at *ir.Instr, look func(in *interp.Interp, x *interp.Execution) bool) (why string) {
	in, _, err := p.rerun(v, nil)
	if err != nil {
		return err.Error()
	}
	var x *interp.Execution
	if p.entry != nil {
		x, err = in.StartCall(p.fn, p.args)
	} else {
		x, err = in.StartStack([]interp.Activation{p.start})
	}
	if err != nil {
		return err.Error()
	}
	if err := x.StopAt(at.Block, true); err != nil {
		return err.Error()
	}
	ctx, cancel := context.WithTimeout(v.ctx, v.options.Time)
	defer cancel()
	first := p.entry != nil && at.Block.Index == 0 // where it stands already
	for n := 0; n < maxArrivals; n++ {
		if !first {
			if result, err := x.Run(ctx); result != nil || err != nil {
				return "" // how it ends is known
			}
		}
		first = false
		if x.Depth() != 1 {
			continue
		}
		for x.Depth() != 1 || x.At(0) != at { // what it calls may come to the same place in an activation of its own
			if result, err := x.Step(ctx); result != nil || err != nil {
				return ""
			}
			if i := x.At(0); x.Depth() == 1 && (i == nil || i.Block != at.Block) {
				break // behind it already
			}
		}
		if x.Depth() == 1 && x.At(0) == at && !look(in, x) {
			return ""
		}
	}
	return fmt.Sprintf("its run from the entry comes there more than %d times", maxArrivals)
}

// What a slot that differs weighs: what the baseline has may be in another slot, or in a value of the function that was left, or nowhere.
var weights = map[string]int{"slot": 2, "value": 3, "": 8}

// stateAt holds the state of an exit against a run from the entry, where that comes to the place where the exit resumes. values are
// those of the function that was left, at the site, by their names: nil where they are not known.
func (p *prediction) stateAt(v *verifier, exit *prediction, after uint64, values map[string]interp.Value) *State {
	s := &State{}
	if exit.fn != p.fn {
		s.Why = fmt.Sprintf("the exit resumes in @%s, and the baseline is @%s", exit.fn.Name, p.fn.Name)
		return s
	}
	point := exit.start.Point
	at := point.Block.Instrs[point.Index]
	for at.Op == ir.OpPhi { // their values are in the frame where the block is entered
		at = point.Block.Instrs[at.Index+1]
	}
	least := -1
	now := &imageMemory{exit.first, v.watcher.View().Target()}
	dead := slices.Concat(p.dead, exit.dead, []machine.Range{{Start: exit.below.Start, End: exit.to.CFA}})
	if p.entry == nil { // both are of one activation: what the function itself stored to in its frame is compared
		dead = p.dead[1:]
	}
	s.Why = p.visit(v, at, func(in *interp.Interp, x *interp.Execution) bool {
		s.Arrivals++
		if s.Arrival > 0 {
			return true // to be counted
		}
		more := p.entry != nil // of an exit it is the one that native code came to
		if !more && s.Arrivals <= p.between {
			return true
		}
		different := map[ir.Value]interp.Value{}
		for value, have := range exit.start.Values {
			want, ok := x.Value(0, value)
			if !ok || abi.SameBits(want, have) {
				continue
			}
			if a, is := want.Uint(); is && want.Type().Kind == ir.PointerKind && in.Made(a) {
				continue // the interpreter has elsewhere what it points to
			}
			different[value] = want
		}
		var memory comparedMemory
		if len(different) == 0 {
			memory = compareMemory(p.before, now, in.Touched(), dead, exit.below, true, in.Made)
		}
		if len(different) == 0 && len(memory.Diffs) == 0 && s.Arrivals >= after {
			s.Arrival, s.Nearest, s.Slots, s.Words, s.Memory = s.Arrivals, 0, nil, 0, nil
			return more
		}
		slots := differences(exit, different, values)
		weight := 0
		for _, d := range slots {
			weight += weights[d.Of]
		}
		if least >= 0 && weight >= least {
			return more
		}
		least, s.Nearest, s.Slots = weight, s.Arrivals, slots
		if s.Words, s.Memory = memory.Words, nil; len(memory.Diffs) > 0 {
			d := memory.Diffs[0].report()
			s.Memory = &d
		}
		return more
	})
	if s.Why == "" && s.Arrivals == 0 && (p.ask != nil || p.gone != "" || p.failed != nil) {
		s.Why = "its run from the entry does not come there"
		switch {
		case p.gone != "":
			s.Why += ": " + p.gone
		case p.failed != nil:
			s.Why += ": " + p.failed.Error()
		default:
			s.Why += ": it waits for the call of " + p.called(p.ask)
		}
	}
	return s
}

// Again is how an exit is held against the next hit of its record in the same activation, where native code did not come to the return.
type Again struct {
	Hit    uint64            `json:"hit"`             // of the record
	Slots  []SlotDifference  `json:"slots,omitempty"` // that differ: what the interpreter has is called baseline
	Words  uint64            `json:"memory_words,omitempty"`
	Memory *MemoryDifference `json:"memory,omitempty"`
}

// untilNext decides an exit whose function does not return by the next hit of its record. It is false where there was none, or nothing can be
// said of it.
func (p *prediction) untilNext(v *verifier) bool {
	if p.next == nil || p.gone != "" {
		return false
	}
	s := p.stateAt(v, p.next, 0, nil)
	if s.Why != "" || s.Arrivals <= p.between {
		return false
	}
	p.out.Again = &Again{Hit: p.next.out.Hit, Slots: s.Slots, Words: s.Words, Memory: s.Memory}
	switch {
	case s.same():
		p.out.Status = Same
	case p.result != nil && p.loose() != "":
		return false
	default:
		p.out.Status = Different
		if d := s.Memory; d != nil {
			d.Near = v.whereabouts(p.out.Exit).memory(d.addr)
		}
	}
	return true
}

// differences are the slots of an exit that differ from what a run from the entry has, with where else that is.
func differences(exit *prediction, wants map[ir.Value]interp.Value, values map[string]interp.Value) (list []SlotDifference) {
	for value, want := range wants {
		d := SlotDifference{Slot: value.Ref(), Exit: exit.start.Values[value].Format(), Baseline: want.Format()}
		var slots, others []string
		for other, has := range exit.start.Values {
			if other != value && known(has) && alike(has, want) {
				slots = append(slots, other.Ref())
			}
		}
		for name, has := range values {
			if known(has) && alike(has, want) {
				others = append(others, name)
			}
		}
		slices.SortFunc(slots, compareNames)
		slices.SortFunc(others, compareNames)
		switch {
		case len(slots) > 0:
			d.In, d.Of = slots[0], "slot"
		case len(others) > 0:
			d.In, d.Of = others[0], "value"
		}
		list = append(list, d)
	}
	place := func(d SlotDifference) int {
		return slices.IndexFunc(exit.frame.Slots, func(s frame.Slot) bool { return s.Name == d.Slot })
	}
	slices.SortFunc(list, func(a, b SlotDifference) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), compareNames(a.Slot, b.Slot))
	})
	return list
}

// alike says that two values are of one type and the same.
func alike(a, b interp.Value) bool {
	return a.Type().Equal(b.Type()) && abi.SameBits(a, b)
}

// compareNames orders names, shorter ones first: %2 before %10.
func compareNames(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// recordIsTrue says whether the record of an exit holds what the function's own IR computes: what its run from the entry has in the operands of
// the site, at some arrival there. known is false where it cannot be told. Of that arrival, or the nearest, it gives each value that was live.
func (p *prediction) recordIsTrue(v *verifier, exit *prediction) (is, known bool, wrong []SlotDifference, values map[string]interp.Value) {
	f := exit.frame
	site := f.Match().Site
	if site == nil || site.Func != p.fn {
		return false, false, nil, nil
	}
	type operand struct {
		value ir.Value
		have  interp.Value
	}
	var list []operand
	for _, s := range f.Slots {
		if s.Status != frame.OK || s.Index < 0 || s.Index >= len(site.Live) {
			continue
		}
		value := site.Live[s.Index]
		if _, constant := value.(*ir.Const); constant {
			continue
		}
		if have, err := interp.FromBytes(p.fn.Module.Layout, value.Type(), s.Bytes); err == nil {
			list = append(list, operand{value, have})
		}
	}
	least := -1
	why := p.visit(v, site.Instr, func(in *interp.Interp, x *interp.Execution) bool {
		known = true
		var differ []SlotDifference
		for _, o := range list {
			want, ok := x.Value(0, o.value)
			a, is := want.Uint()
			if !ok || abi.SameBits(want, o.have) || is && in.Made(a) {
				continue
			}
			differ = append(differ, SlotDifference{Slot: o.value.Ref(), Exit: o.have.Format(), Baseline: want.Format()})
		}
		if least < 0 || len(differ) < least {
			least, wrong, values = len(differ), differ, liveAt(x, p.fn)
		}
		return least > 0
	})
	return least == 0, known && why == "", wrong, values
}

// maxLive bounds the values of a function that are looked at.
const maxLive = 10_000

// liveAt are the values that an activation has, by their names.
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
