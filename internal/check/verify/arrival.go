package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// SlotDifference is a slot of an exit that differs from the baseline's value where the exit resumes.
type SlotDifference struct {
	Slot     string `json:"slot"`
	Exit     string `json:"exit"`
	Baseline string `json:"baseline"`
	// In names where the baseline's value is instead: another slot of the exit, or a value of the function that was left.
	In string `json:"in,omitempty"`
	// Of is the kind of In: "slot", or "value" of the function that was left.
	Of string `json:"of,omitempty"`
}

// State describes how the state at an exit compares with a run from the entry.
type State struct {
	Arrivals uint64 `json:"arrivals"`          // number of times that the run reached the place where the exit resumes
	Arrival  uint64 `json:"arrival,omitempty"` // the first arrival, from 1, with the state of the exit, not before the previous exit's arrival; 0: none
	Nearest  uint64 `json:"nearest,omitempty"` // if Arrival is 0: the arrival that differs in the fewest slots
	// Slots holds the slots that differ at the nearest arrival. Words counts the words of eight bytes of memory that differ there, and Memory is the
	// first of these.
	Slots  []SlotDifference  `json:"slots,omitempty"`
	Words  uint64            `json:"memory_words,omitempty"`
	Memory *MemoryDifference `json:"memory,omitempty"`
	Why    string            `json:"why,omitempty"` // why the state could not be compared
}

// same reports whether the run had the state of the exit at one of its arrivals.
func (s *State) same() bool { return s.Why == "" && s.Arrival > 0 }

// different reports whether the run had the state of the exit at no arrival.
func (s *State) different() bool { return s.Why == "" && s.Arrival == 0 }

// weights ranks a slot that differs by where the baseline's value was found: in another slot, in a value of the function that was left, or nowhere.
var weights = map[string]int{"slot": 2, "value": 3, "": 8}

// stateOf compares the state of an exit, or of the next hit of its record, with that of a run.
type stateOf struct {
	p, exit *prediction
	at      *ir.Instr  // the instruction of the run where the exit resumes
	of      []ir.Value // the values that the exit has
	dead    []machine.Range
}

func (p *prediction) stateOf(exit *prediction) *stateOf {
	s := &stateOf{p: p, exit: exit}
	point := exit.origin.start.Point
	s.at = point.Block.Instrs[point.Index]
	for s.at.Op == ir.OpPhi { // a frame that enters a block holds the values of its phis
		s.at = point.Block.Instrs[s.at.Index+1]
	}
	for value := range exit.origin.start.Values {
		s.of = append(s.of, value)
	}
	s.dead = slices.Concat(p.origin.dead, exit.origin.dead, []machine.Range{{Start: exit.origin.below.Start, End: exit.origin.to.CFA}})
	if p.entry == nil { // one activation: compare also what the function stored to its frame
		s.dead = p.origin.dead[1:]
	}
	return s
}

// different returns the values of the run that differ from those of the exit.
func (s *stateOf) different(a *arrival) map[ir.Value]interp.Value {
	list := map[ir.Value]interp.Value{}
	for n, value := range s.of {
		want := a.values[n]
		switch {
		case want.IsNone() || abi.SameBits(want.Value, s.exit.origin.start.Values[value]):
		case want.made && want.Type().Kind == ir.PointerKind: // it points to memory that only the interpreter has
		default:
			list[value] = want.Value
		}
	}
	return list
}

// memory compares the memory of the exit with the run's.
func (s *stateOf) memory(v *verifier, a *arrival) (comparedMemory, error) {
	if err := s.p.reruns.runTo(s.at, a); err != nil {
		return comparedMemory{}, err
	}
	now := &imageMemory{image: s.exit.effects.first, now: v.watcher.View().Target()}
	return v.withoutShared(compareMemory(s.p.effects.now, now, a.run.in.Touched(), s.dead, s.exit.origin.below, true, a.run.in.Made)), nil
}

// nearest records the differences of an arrival.
func (s *State) nearest(number uint64, slots []SlotDifference, memory comparedMemory) {
	s.Nearest, s.Slots, s.Words, s.Memory = number, slots, memory.Words, nil
	if len(memory.Diffs) > 0 {
		d := memory.Diffs[0].report()
		s.Memory = &d
	}
}

// stateAt compares the state of an exit with a run from the entry, each time the run reaches the place where the exit resumes. If the state never
// matches, stateAt calls values, which returns by name the values that the left function has at the site, nil if they are not known.
func (p *prediction) stateAt(v *verifier, exit *prediction, after uint64, values func() map[string]interp.Value) *State {
	s := &State{}
	if exit.origin.fn != p.origin.fn {
		s.Why = fmt.Sprintf("the exit resumes in @%s, and the baseline is @%s", exit.origin.fn.Name, p.origin.fn.Name)
		return s
	}
	is := p.stateOf(exit)
	var failed error
	s.Why = p.reruns.each(is.at, is.of, func(a *arrival) bool {
		s.Arrivals++
		if s.Arrival > 0 || failed != nil || s.Arrivals < after || len(is.different(a)) > 0 {
			return true // continue, to count the arrivals
		}
		var memory comparedMemory
		if memory, failed = is.memory(v, a); failed == nil && len(memory.Diffs) == 0 {
			s.Arrival = s.Arrivals
		}
		return true
	})
	switch {
	case s.Why != "" || s.Arrival > 0:
		return s
	case failed != nil:
		s.Why = failed.Error()
		return s
	}
	if s.Why = p.native.raised(); s.Why != "" {
		return s
	}
	if s.Why = p.comesNoFurther(s.Arrivals); s.Why != "" {
		return s
	}
	if s.Why = unspecifiedByIR(&p.interp, &p.reruns); s.Why != "" {
		return s
	}
	has := values()
	least, number := -1, uint64(0)
	_ = p.reruns.each(is.at, is.of, func(a *arrival) bool {
		number++
		different := is.different(a)
		slots := differences(exit, different, has)
		weight := 0
		for _, d := range slots {
			weight += weights[d.Of]
		}
		if least >= 0 && weight >= least {
			return true
		}
		var memory comparedMemory
		if least = weight; weight == 0 {
			memory, failed = is.memory(v, a)
		}
		s.nearest(number, slots, memory)
		return weight > 0
	})
	if failed != nil {
		s.Why = failed.Error()
	}
	return s
}

// comesNoFurther returns why a run from the entry may still reach the place with the state of the exit, although it did not in its first times
// arrivals, or "".
func (p *prediction) comesNoFurther(times uint64) string {
	why := ""
	switch {
	case p.interp.incomparable != "":
		why = p.interp.incomparable
	case p.interp.failed != nil && (times == 0 || p.interp.atLimit()):
		why = p.interp.failed.Error()
	case p.interp.pending != nil && (times == 0 || p.native.mayLack(p.interp.pending)):
		why = "it waits for the call of " + calleeName(p.interp.pending)
	}
	switch {
	case why == "":
		return ""
	case times == 0:
		return "its run from the entry does not come there: " + why
	}
	return "its run from the entry does not come so far: " + why
}

// Again describes how an exit compares with the next hit of its record in the same activation, where native code did not come to the return.
type Again struct {
	Hit    uint64            `json:"hit"`             // of the record
	Slots  []SlotDifference  `json:"slots,omitempty"` // the slots that differ; Baseline is the interpreter's value
	Words  uint64            `json:"memory_words,omitempty"`
	Memory *MemoryDifference `json:"memory,omitempty"`
}

// untilNext decides an exit whose function does not return, by comparing it at the next hit of its record. It returns false if there was no next hit,
// or if the comparison proves nothing.
func (p *prediction) untilNext(v *verifier) bool {
	if p.next == nil || p.interp.incomparable != "" {
		return false
	}
	s := p.stateAtNext(v)
	if s.Why != "" || s.Arrivals <= p.between {
		return false
	}
	p.out.Again = &Again{Hit: p.next.out.Hit, Slots: s.Slots, Words: s.Words, Memory: s.Memory}
	switch {
	case s.same():
		p.out.Status = Same
	case p.native.signal != 0:
		p.out.Again = nil
		p.out.notComparable(p.native.raised())
	case p.interp.result != nil && unspecifiedByFunctions(&p.interp) != "":
		return false
	default:
		p.out.Status = Different
		if d := s.Memory; d != nil {
			d.Near = v.whereabouts(p.out.Exit).memory(d.addr)
		}
	}
	return true
}

// stateAtNext compares the state at the next hit of the record with the run from the exit, when that reaches the record as many times.
func (p *prediction) stateAtNext(v *verifier) *State {
	s := &State{}
	if p.next.origin.fn != p.origin.fn {
		s.Why = fmt.Sprintf("the next hit resumes in @%s", p.next.origin.fn.Name)
		return s
	}
	is := p.stateOf(p.next)
	ctx, cancel := context.WithTimeout(v.ctx, v.options.Time)
	defer cancel()
	s.Why = p.reruns.visit(ctx, is.at, nil, func(run *stoppedRun) bool {
		if s.Arrivals++; s.Arrivals <= p.between {
			return true
		}
		a := &arrival{run.x.Steps(), run.values(is.of), run}
		different := is.different(a)
		var memory comparedMemory
		if len(different) == 0 {
			memory, _ = is.memory(v, a)
		}
		if s.nearest(s.Arrivals, differences(p.next, different, nil), memory); len(different) == 0 && len(memory.Diffs) == 0 {
			s.Arrival = s.Arrivals
		}
		return false
	})
	return s
}

// differences returns the slots of an exit that differ from a run from the entry, and where else the run's value was found.
func differences(exit *prediction, wants map[ir.Value]interp.Value, values map[string]interp.Value) (list []SlotDifference) {
	for value, want := range wants {
		d := SlotDifference{Slot: value.Ref(), Exit: exit.origin.start.Values[value].Format(), Baseline: want.Format()}
		var slots, others []string
		for other, has := range exit.origin.start.Values {
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
		return slices.IndexFunc(exit.origin.frame.Slots, func(s frame.Slot) bool { return s.Name == d.Slot })
	}
	slices.SortFunc(list, func(a, b SlotDifference) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), compareNames(a.Slot, b.Slot))
	})
	return list
}

// alike reports whether two values have the same type and the same bits.
func alike(a, b interp.Value) bool {
	return a.Type().Equal(b.Type()) && abi.SameBits(a, b)
}

// compareNames orders names, shorter ones first: %2 before %10.
func compareNames(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// recordIsTrue reports whether the record of an exit holds what the function's own IR computes: the operands of the site at some arrival of its run
// from the entry. known is false if that cannot be decided. values holds the live values at that arrival, or at the nearest one.
func (p *prediction) recordIsTrue(v *verifier, exit *prediction) (is, known bool, wrong []SlotDifference, values map[string]interp.Value) {
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
	return least == 0, known && why == "", wrong, values
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
