package verify

import (
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/deopt/interp"
)

// Baseline is the comparison of an exit, or of an activation, with a run of its baseline from the function's entry.
type Baseline struct {
	Function string `json:"function"`        // the baseline
	State    *State `json:"state,omitempty"` // comparison of the state at the exit; nil for an activation
	// Result compares the baseline's result with that of native code.
	Result []ResultPart `json:"result,omitempty"`
	Status string       `json:"status"`           // outcome for baseline and native code at the return: same, different, not comparable
	Reason string       `json:"reason,omitempty"` // the reason why they are not comparable
	// Wrong names the wrong part: the stack map or native code, the bundle, the layout, the optimized IR, the runtime; "" if nothing is wrong.
	Wrong string `json:"wrong,omitempty"`

	mapTrue, mapKnown bool
	mapWrong          []SlotDifference
}

// compareWithEntry compares the state of an exit with the interpreter's runs from the entry of its activation.
func (v *verifier) compareWithEntry(e *activation, exit *prediction) {
	b := &Baseline{Function: e.baseline.origin.fn.Name}
	exit.out.Baseline = b
	place := exit.origin.start.Point.Block.Instrs[exit.origin.start.Point.Index]
	b.State = v.newStateComparison(e.baseline, exit).atEntry(e.reached[place], func() (values map[string]interp.Value) {
		own := e.own
		if own == nil && e.fn == e.baseline.origin.fn {
			own = e.baseline
		}
		if own != nil {
			b.mapTrue, b.mapKnown, b.mapWrong, values = own.recordIsTrue(exit)
		}
		return values
	})
	if b.State.same() {
		e.reached[place] = b.State.Arrival
	}
	if d := b.State.Memory; d != nil {
		d.Near = v.whereabouts(exit.out.Exit).memory(d.addr)
	}
	exit.out.entry = e
	e.exits++
}

// fullyKnown reports whether all bits of a scalar are known.
func fullyKnown(v interp.Value) bool {
	_, undefined := v.Bits()
	return !slices.ContainsFunc(undefined, func(w uint64) bool { return w != 0 })
}

// setVerdict sets the verdict of an exit whose comparison is complete. While the activation is in progress, it uses only the state at the exit.
func (e *activation) setVerdict(out *Verified) {
	b := out.Baseline
	if base := e.baseline.out; e.ended {
		b.Status, b.Reason, b.Result = base.Status, base.Why, base.Result
	}
	if b.Wrong = b.wrongPart(out, e); b.Wrong != "" || b.State.different() || b.Status == Different {
		out.Status, out.Why = Different, ""
	}
}

// conclude sets the verdict of an activation that has ended, using the verdicts of its exits.
func (e *activation) conclude() {
	base := e.baseline.out
	e.ended = true
	base.Baseline = &Baseline{Function: e.baseline.origin.fn.Name, Status: base.Status, Reason: base.Why}
	if base.Status != Different {
		return
	}
	switch {
	case e.fn == nil:
		base.Baseline.Wrong = fmt.Sprintf("the optimized code: it differs from @%s", e.baseline.origin.fn.Name)
	case e.own == nil:
		base.Baseline.Wrong = fmt.Sprintf("the native code: it differs from its IR, @%s", e.fn.Name)
	case e.own.out.Status == Different:
		base.Baseline.Wrong = fmt.Sprintf("the native code: it differs from its IR, @%s, which agrees with @%s", e.fn.Name, e.baseline.origin.fn.Name)
		if e.own.interp.machine != nil && !sameResults(e.own, e.baseline) {
			base.Baseline.Wrong = fmt.Sprintf("the native code, which differs from its IR, @%s, and that IR, which differs from @%s", e.fn.Name, e.baseline.origin.fn.Name)
		}
	default:
		base.Baseline.Wrong = fmt.Sprintf("the optimized IR: @%s differs from @%s", e.fn.Name, e.baseline.origin.fn.Name)
	}
}

// sameResults reports whether two runs of the interpreter returned the same result.
func sameResults(a, b *prediction) bool {
	if a.interp.result == nil || b.interp.result == nil || a.interp.failed != nil || b.interp.failed != nil {
		return a.interp.failed != nil == (b.interp.failed != nil)
	}
	if a.interp.result.Value.IsNone() || b.interp.result.Value.IsNone() {
		return a.interp.result.Value.IsNone() == b.interp.result.Value.IsNone()
	}
	return a.interp.result.Value.Type().Equal(b.interp.result.Value.Type()) && a.interp.result.Value.Format() == b.interp.result.Value.Format()
}

// wrongPart returns the part that is wrong at an exit, "" if nothing is wrong or no part can be named.
func (b *Baseline) wrongPart(out *Verified, e *activation) string {
	s := b.State
	record := fmt.Sprintf("record %d", out.Exit.Frame.Record.ID)
	own := e.function
	switch {
	case s.different() && b.mapKnown && !b.mapTrue:
		var list []string
		for _, d := range b.mapWrong {
			list = append(list, fmt.Sprintf("%s is %s in @%s's own IR and %s in the record", d.Slot, d.Baseline, own, d.Exit))
		}
		return fmt.Sprintf("the stack map or the native code: %s does not hold what the function's own IR computes; %s", record, strings.Join(list, ", "))
	case s.different() && s.Arrivals == 0:
		return "the optimized code, the bundle or the layout: the baseline never reaches the place where the exit resumes"
	case s.different() && len(s.Slots) == 0 && s.Words == 0:
		return "the optimized code, the bundle or the layout: the baseline has the state of the exit before that of an earlier exit, not after it"
	case s.different() && len(s.Slots) == 0:
		return "the optimized code: memory at the exit differs from the baseline's"
	case s.different():
		return s.wrongPart(b.mapKnown && b.mapTrue, own)
	case b.Status != Different:
		return ""
	case out.Status == Same && out.Exit.Frame.To() == e.fn:
		return "the native code before or after the exit: resuming from the exit gives native code's result, not the baseline's"
	case out.Status == Same:
		return "the bundle, the layout or the code before the exit: resuming from it gives native code's result, not the baseline's"
	case out.Exit.Frame.To() == e.fn:
		return "the native code after the site: the exit has the baseline's state, and resuming from it gives the baseline's result"
	}
	return "the runtime: the exit has the baseline's state, and resuming from it gives the baseline's result; native code's result differs"
}

// wrongPart returns the part that is wrong if the state differs. recordTrue reports whether the record holds the values that the function's own IR
// computes.
func (s *State) wrongPart(recordTrue bool, own string) string {
	exchanged, elsewhere, nowhere := []string{}, []string{}, []string{}
	for _, d := range s.Slots {
		switch d.Of {
		case "slot":
			exchanged = append(exchanged, fmt.Sprintf("the baseline's %s is in %s", d.Slot, d.In))
		case "value":
			elsewhere = append(elsewhere, fmt.Sprintf("the baseline's %s, %s, is in %s of @%s", d.Slot, d.Baseline, d.In, own))
		default:
			nowhere = append(nowhere, d.Slot)
		}
	}
	switch {
	case len(nowhere) == 0 && len(elsewhere) == 0:
		return "the bundle or the layout: " + strings.Join(exchanged, ", ")
	case len(nowhere) == 0:
		return "the bundle: " + strings.Join(append(elsewhere, exchanged...), ", ")
	case recordTrue:
		return fmt.Sprintf("the optimized IR: no value of @%s at the site equals the baseline's %s", own, strings.Join(nowhere, ", "))
	}
	return fmt.Sprintf("the optimized code or the bundle: no recorded or computed value equals the baseline's %s", strings.Join(nowhere, ", "))
}
