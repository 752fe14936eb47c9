package verify

import (
	"context"
	"errors"
	"fmt"
)

// nextHit is the next hit of the record of an exit in the same activation.
type nextHit struct {
	p       *prediction // the prediction that begins at the hit, or nil
	between uint64      // number of hits before it that were not verified
	inexact bool        // between may be too low or too high
}

// Again is the comparison of an exit with the next hit of its record in the same activation. It is made if native code did not return.
type Again struct {
	Hit    uint64            `json:"hit"`             // number of the next hit, as [Verified].Hit
	Slots  []SlotDifference  `json:"slots,omitempty"` // the slots that differ; Baseline is the interpreter's value
	Words  uint64            `json:"memory_words,omitempty"`
	Memory *MemoryDifference `json:"memory,omitempty"`
}

// atNextHit decides an exit whose function does not return. It compares the exit with the next hit of its record. It returns false if there was no
// next hit, or if the comparison decides nothing.
func (c *comparison) atNextHit() bool {
	if c.next.p == nil || c.interp.incomparable != nil {
		return false
	}
	s := c.v.newStateComparison(c.prediction, c.next.p).atNextHit(c.next.between)
	if s.Why != "" || s.Arrivals <= c.next.between {
		return false
	}
	c.out.Again = &Again{Hit: c.next.p.out.Hit, Slots: s.Slots, Words: s.Words, Memory: s.Memory}
	switch {
	case s.same():
		c.out.Status = Same
	case c.native.signal != 0:
		c.out.Again = nil
		c.out.notComparable(errors.New(c.native.raisedReason()))
	case c.interp.result != nil && unspecifiedByFunctions(&c.interp) != "":
		return false
	default:
		c.out.Status = Different
		if d := s.Memory; d != nil {
			d.Near = c.v.whereabouts(c.out.Exit).memory(d.addr)
		}
	}
	return true
}

// atNextHit compares the state at the next hit of the record with the interpreter's run from the exit, after that run has reached the record the same
// number of times. between is the number of hits between the exit and the next verified hit.
func (s *stateComparison) atNextHit(between uint64) *State {
	out := &State{}
	if s.exit.origin.fn != s.run.origin.fn {
		out.undecided(fmt.Errorf("the next hit resumes in @%s", s.exit.origin.fn.Name))
		return out
	}
	ctx, cancel := context.WithTimeout(s.v.ctx, s.v.options.Time)
	defer cancel()
	out.undecided(s.run.reruns.visit(ctx, s.at, nil, func(run *stoppedRun) bool {
		if out.Arrivals++; out.Arrivals <= between {
			return true
		}
		a := &arrival{run.x.Steps(), run.values(s.values), run}
		different := s.different(a)
		var memory comparedMemory
		if len(different) == 0 {
			memory, _ = s.memory(a)
		}
		if out.setNearest(out.Arrivals, s.slots(different, nil), memory); len(different) == 0 && len(memory.Diffs) == 0 {
			out.Arrival = out.Arrivals
		}
		return false
	}))
	return out
}
