package verify

import (
	"slices"

	"example.com/reframe/internal/machine"
)

// progress holds the predictions that are pending and the calls in progress.
type progress struct {
	pending     []*prediction
	nativeCalls []*nativeCall
	call        *call // the innermost call in progress in which the thread is; nil if there is none
}

// callsInProgress returns all calls in progress.
func (g *progress) callsInProgress() (list []*call) {
	for _, p := range g.pending {
		if n := len(list); n == 0 || list[n-1] != p.call && !slices.Contains(list, p.call) {
			list = append(list, p.call)
		}
	}
	for _, c := range g.nativeCalls {
		list = append(list, c.call)
	}
	return list
}

// updateCall replaces g.call by the nearest outer call that is still in progress, if g.call has ended.
func (g *progress) updateCall() {
	list := g.callsInProgress()
	for g.call != nil && !slices.Contains(list, g.call) {
		g.call = g.call.outer
	}
}

// endNativeCalls removes ended native calls, and returns the predictions that wait for them.
func (g *progress) endNativeCalls(ended func(*nativeCall) bool) map[*prediction]bool {
	waits := map[*prediction]bool{}
	g.nativeCalls = slices.DeleteFunc(g.nativeCalls, func(x *nativeCall) bool {
		if !ended(x) {
			return false
		}
		for _, p := range x.predictions {
			waits[p] = true
		}
		return true
	})
	return waits
}

// inStep returns the pending predictions whose interpreter is in step with the code that runs now: the thread is in their activation, and not in a
// native call made from there.
func (g *progress) inStep() (list []*prediction) {
	for _, p := range g.pending {
		for c := g.call; c != nil && c.native == nil; c = c.outer {
			if c == p.call {
				list = append(list, p)
				break
			}
		}
	}
	return list
}

// activationOf returns the followed activation to which an exit belongs, or nil.
func (g *progress) activationOf(p *prediction) *activation {
	for _, q := range slices.Backward(g.pending) {
		if q.entry != nil && q == q.entry.baseline && q.call == p.call {
			return q.entry
		}
	}
	return nil
}

// exitsPending counts all pending exits, and those at an address.
func (g *progress) exitsPending(at machine.Addr) (all, atPlace int) {
	for _, p := range g.pending {
		if p.entry == nil {
			all++
			atPlace += int(oneIf(p.out.Exit.Point.Addr == at))
		}
	}
	return all, atPlace
}

// entriesPending counts the runs from entries.
func (g *progress) entriesPending() (n int) {
	for _, p := range g.pending {
		n += int(oneIf(p.entry != nil))
	}
	return n
}

// roomForEntry reports whether one more activation may be followed from its entry, which takes up to two runs.
func (g *progress) roomForEntry() bool { return g.entriesPending()+2 <= maxEntries }
