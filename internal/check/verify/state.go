package verify

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// SlotDifference is a slot of an exit that differs from the baseline's value at the place at which the exit resumes.
type SlotDifference struct {
	Slot     string `json:"slot"`
	Exit     string `json:"exit"`
	Baseline string `json:"baseline"`
	// In is the name of another slot of the exit, or of a value of the function that was left, that has the baseline's value; "" if there is none.
	In string `json:"in,omitempty"`
	// Of is the kind of In: "slot", or "value" of the function that was left.
	Of string `json:"of,omitempty"`
}

// State is the comparison of the state at an exit with a run from the entry.
type State struct {
	Arrivals uint64 `json:"arrivals"`          // number of times that the run reached the place at which the exit resumes
	Arrival  uint64 `json:"arrival,omitempty"` // the first arrival, from 1, with the state of the exit, not before the previous exit's arrival; 0: none
	Nearest  uint64 `json:"nearest,omitempty"` // if Arrival is 0: the arrival that differs in the fewest slots
	// Slots holds the slots that differ at the nearest arrival. Words counts the words of eight bytes of memory that differ there, and Memory is the
	// first of these.
	Slots  []SlotDifference  `json:"slots,omitempty"`
	Words  uint64            `json:"memory_words,omitempty"`
	Memory *MemoryDifference `json:"memory,omitempty"`
	Why    string            `json:"why,omitempty"` // the reason why the state could not be compared

	reason error // the error of Why
}

// undecided sets the reason why the state could not be compared; nil if it was compared.
func (s *State) undecided(why error) {
	if s.reason = why; why != nil {
		s.Why = why.Error()
	}
}

// same reports whether the run had the state of the exit at one of its arrivals.
func (s *State) same() bool { return s.Why == "" && s.Arrival > 0 }

// different reports whether the run had the state of the exit at no arrival.
func (s *State) different() bool { return s.Why == "" && s.Arrival == 0 }

// weights holds the cost of a slot that differs, by [SlotDifference].Of: the baseline's value is in another slot, in a value, or nowhere.
var weights = map[string]int{"slot": 2, "value": 3, "": 8}

// setNearest records the differences of an arrival.
func (s *State) setNearest(number uint64, slots []SlotDifference, memory comparedMemory) {
	s.Nearest, s.Slots, s.Words, s.Memory = number, slots, memory.Words, nil
	if len(memory.Diffs) > 0 {
		d := memory.Diffs[0].report()
		s.Memory = &d
	}
}

// stateComparison compares the state of an exit with a run of the interpreter that reaches the place at which the exit resumes.
type stateComparison struct {
	v      *verifier
	run    *prediction // the run from the entry of the function, or from an earlier exit of the same activation
	exit   *prediction
	at     *ir.Instr  // the instruction of the run at which the exit resumes
	values []ir.Value // the values that the exit has
	dead   []machine.Range
}

func (v *verifier) newStateComparison(run, exit *prediction) *stateComparison {
	s := &stateComparison{v: v, run: run, exit: exit}
	point := exit.origin.start.Point
	s.at = point.Block.Instrs[point.Index]
	for s.at.Op == ir.OpPhi { // a frame that enters a block holds the values of its phis
		s.at = point.Block.Instrs[s.at.Index+1]
	}
	for value := range exit.origin.start.Values {
		s.values = append(s.values, value)
	}
	s.dead = slices.Concat(run.origin.dead, exit.origin.dead, []machine.Range{{Start: exit.origin.below.Start, End: exit.origin.to.CFA}})
	if !run.origin.entry { // both are one activation, so compare also the function's stores to its frame
		s.dead = run.origin.dead[1:]
	}
	return s
}

// different returns the values of the run that differ from those of the exit.
func (s *stateComparison) different(a *arrival) map[ir.Value]interp.Value {
	list := map[ir.Value]interp.Value{}
	for n, value := range s.values {
		want := a.values[n]
		switch {
		case want.IsNone() || abi.SameBits(want.Value, s.exit.origin.start.Values[value]):
		case sameSign(value, want.Value, s.exit.origin.start.Values[value], s.run.interp.called()):
		case want.made && want.Type().Kind == ir.PointerKind: // the pointer leads to memory that only the interpreter has
		default:
			list[value] = want.Value
		}
	}
	return list
}

// memory compares the memory of the process at the exit with the memory of the run at an arrival.
func (s *stateComparison) memory(a *arrival) (comparedMemory, error) {
	if err := s.run.reruns.runTo(s.at, a); err != nil {
		return comparedMemory{}, err
	}
	now := &imageMemory{image: s.exit.effects.first, now: s.v.watcher.View().Target()}
	return s.v.withoutShared(compareMemory(s.run.effects.now, now, a.run.in.Touched(), s.dead, s.exit.origin.below, true, a.run.in.Made)), nil
}

// atEntry compares the state of an exit with a run from the entry, each time the run reaches the place at which the exit resumes. If the state never
// matches, atEntry calls values. It returns, by name, the values of the function that was left at the site, or nil if they are unknown. after is the
// first arrival that may match.
func (s *stateComparison) atEntry(after uint64, values func() map[string]interp.Value) *State {
	out := &State{}
	run := s.run
	if s.exit.origin.fn != run.origin.fn {
		out.undecided(fmt.Errorf("the exit resumes in @%s, and the baseline is @%s", s.exit.origin.fn.Name, run.origin.fn.Name))
		return out
	}
	var failed error
	out.undecided(run.reruns.each(s.at, s.values, func(a *arrival) bool {
		out.Arrivals++
		if out.Arrival > 0 || failed != nil || out.Arrivals < after || len(s.different(a)) > 0 {
			return true // continue, to count the arrivals
		}
		var memory comparedMemory
		if memory, failed = s.memory(a); failed == nil && len(memory.Diffs) == 0 {
			out.Arrival = out.Arrivals
		}
		return true
	}))
	switch {
	case out.Why != "" || out.Arrival > 0:
		return out
	case failed != nil:
		out.undecided(failed)
		return out
	}
	if out.undecided(s.whyUndecided(out.Arrivals)); out.Why != "" {
		return out
	}
	out.undecided(s.nearest(out, values()))
	return out
}

// whyUndecided returns the reason why a run from the entry decides nothing although it did not have the state of the exit at its first times
// arrivals, or nil.
func (s *stateComparison) whyUndecided(times uint64) error {
	if why := s.run.native.raisedReason(); why != "" {
		return errors.New(why)
	}
	if why := s.whyUnfinished(times); why != nil {
		return why
	}
	if why := unspecifiedByIR(&s.run.interp, &s.run.reruns); why != "" {
		return errors.New(why)
	}
	return nil
}

// nearest records the differences at the nearest arrival. values is as in [stateComparison.atEntry].
func (s *stateComparison) nearest(out *State, values map[string]interp.Value) error {
	least, number := -1, uint64(0)
	var failed error
	_ = s.run.reruns.each(s.at, s.values, func(a *arrival) bool {
		number++
		different := s.different(a)
		slots := s.slots(different, values)
		weight := 0
		for _, d := range slots {
			weight += weights[d.Of]
		}
		if least >= 0 && weight >= least {
			return true
		}
		var memory comparedMemory
		if least = weight; weight == 0 {
			memory, failed = s.memory(a)
		}
		out.setNearest(number, slots, memory)
		return weight > 0
	})
	return failed
}

// whyUnfinished returns the reason why a run from the entry may still reach the place with the state of the exit, although it did not at its first
// times arrivals, or nil.
func (s *stateComparison) whyUnfinished(times uint64) (why error) {
	p := s.run
	switch {
	case p.interp.incomparable != nil:
		why = p.interp.incomparable
	case p.interp.failed != nil && (times == 0 || p.interp.atLimit()):
		why = p.interp.failed
	case p.interp.pending != nil && (times == 0 || p.native.mayLack(p.interp.pending)):
		why = frame.Errorf("it waits for the call of %v", calleeOf(p.interp.pending))
	}
	switch {
	case why == nil:
		return nil
	case times == 0:
		return frame.Errorf("its run from the entry does not reach the place: %w", why)
	}
	return frame.Errorf("its run from the entry ends before: %w", why)
}

// slots returns the slots of the exit that differ from the run, and the other places at which the run's values were found.
func (s *stateComparison) slots(wants map[ir.Value]interp.Value, values map[string]interp.Value) (list []SlotDifference) {
	for value, want := range wants {
		d := SlotDifference{Slot: value.Ref(), Exit: s.exit.origin.start.Values[value].Format(), Baseline: want.Format()}
		var slots, others []string
		for other, has := range s.exit.origin.start.Values {
			if other != value && fullyKnown(has) && sameValue(has, want) {
				slots = append(slots, other.Ref())
			}
		}
		for name, has := range values {
			if fullyKnown(has) && sameValue(has, want) {
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
		return slices.IndexFunc(s.exit.origin.frame.Slots, func(s frame.Slot) bool { return s.Name == d.Slot })
	}
	slices.SortFunc(list, func(a, b SlotDifference) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), compareNames(a.Slot, b.Slot))
	})
	return list
}

// sameValue reports whether two values have the same type and the same bits.
func sameValue(a, b interp.Value) bool {
	return a.Type().Equal(b.Type()) && abi.SameBits(a, b)
}

// compareNames orders names, shorter ones first: %2 before %10.
func compareNames(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
