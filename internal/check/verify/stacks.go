package verify

import (
	"errors"
	"slices"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
)

// call is a call in progress on one of the machine stacks of a thread: the activation of pending predictions, or a native call. A thread has several
// stacks if its program runs coroutines (makecontext(3), Boost.Context, goroutines): calls on different stacks end in any order, and their addresses
// do not show the order.
type call struct {
	to     ptrace.Return
	outer  *call // the next call further out on the same stack; nil for the outermost one
	native *nativeCall
}

// within reports whether a call is outer, or was made inside outer.
func (c *call) within(outer *call) bool {
	for ; c != nil; c = c.outer {
		if c == outer {
			return true
		}
	}
	return false
}

// returned reports whether a thread with this program counter and stack pointer has returned from the call.
func (c *call) returned(pc, sp machine.Addr) bool {
	return pc == c.to.Addr && sp >= c.to.CFA && uint64(sp-c.to.CFA) <= c.to.Pops
}

// innermost returns the innermost of several calls on one stack; nil if list is empty.
func innermost(list []*call) (inner *call) {
	for _, c := range list {
		if inner == nil || c.within(inner) {
			inner = c
		}
	}
	return inner
}

// machineStack is the unwound stack of a thread.
type machineStack struct {
	frames []*unwind.Frame
	long   bool // the stack has more frames than were unwound
}

func stackOf(frames []*deopt.Frame, end unwind.End) machineStack {
	s := machineStack{long: tooLong(len(frames), end)}
	for _, f := range frames {
		s.frames = append(s.frames, f.Physical())
	}
	return s
}

// unwindLimit is the default bound of an [unwind.Unwinder].
const unwindLimit = 512

func tooLong(frames int, end unwind.End) bool { return !end.Complete && frames >= unwindLimit }

// unwind unwinds the stack of a thread.
func (v *verifier) unwind(registers *machine.Registers) machineStack {
	walked := v.watcher.View().Walk(registers, nil)
	s := machineStack{long: tooLong(len(walked.Frames), walked.End)}
	for i := range walked.Frames {
		s.frames = append(s.frames, &walked.Frames[i])
	}
	return s
}

// enclosing returns the innermost call in progress that encloses a frame of a stack, or nil.
func (v *verifier) enclosing(s machineStack, at int) *call {
	list := v.callsInProgress()
	if len(list) == 0 || len(s.frames) == 0 {
		return nil
	}
	byReturn := map[ptrace.Return][]*call{}
	for _, c := range list {
		to := ptrace.Return{Addr: c.to.Addr, CFA: c.to.CFA}
		byReturn[to] = append(byReturn[to], c)
	}
	for n := at; n+1 < len(s.frames); n++ {
		if found := byReturn[ptrace.Return{Addr: s.frames[n+1].PC, CFA: s.frames[n].CFA}]; found != nil {
			return innermost(found)
		}
	}
	if !s.long {
		return nil // unwinding ended for another reason, and the memory above may be the stack of another coroutine
	}
	// The nearest call above in the same mapping encloses frames that were not unwound.
	last := s.frames[len(s.frames)-1]
	sp, err := last.Registers.Addr(v.watcher.View().Target().Arch().SP)
	maps, errMaps := v.watcher.View().Target().Mappings()
	if err != nil || errMaps != nil {
		return nil
	}
	k := slices.IndexFunc(maps, func(m machine.Mapping) bool { return m.Contains(sp) })
	var nearest []*call
	for _, c := range list {
		switch {
		case k < 0 || c.to.CFA < sp || !maps[k].Contains(c.to.CFA-1):
		case len(nearest) > 0 && c.to.CFA > nearest[0].to.CFA:
		case len(nearest) > 0 && c.to.CFA == nearest[0].to.CFA:
			nearest = append(nearest, c)
		default:
			nearest = []*call{c}
		}
	}
	return innermost(nearest)
}

// maxFrame bounds the size of frames in which ended calls are searched: the CFA of a trampoline may lie on another stack.
const maxFrame = 64 << 10

// endedCalls returns the calls in progress that ended without a return, according to the stack of the thread: a non-local jump has left them, or
// another coroutine now uses their stack. It ignores guessed frames.
func (v *verifier) endedCalls(s machineStack) (ended []*call) {
	on := map[ptrace.Return]bool{}
	var extents []machine.Range
	certain := 0
	for ; certain+1 < len(s.frames); certain++ {
		f := s.frames[certain]
		if f.NoCFA != "" || f.Guess != "" || s.frames[certain+1].Guess != "" {
			break
		}
		on[ptrace.Return{Addr: s.frames[certain+1].PC, CFA: f.CFA}] = true
		if sp, err := f.Registers.Addr(v.watcher.View().Target().Arch().SP); err == nil && sp < f.CFA && f.CFA-sp <= maxFrame {
			extents = append(extents, machine.Range{Start: sp + 1, End: f.CFA + 1})
		}
	}
	is := func(c *call) bool { return on[ptrace.Return{Addr: c.to.Addr, CFA: c.to.CFA}] }
	list := v.callsInProgress()
	for _, c := range list {
		if is(c) {
			continue
		}
		outer := c.outer
		for outer != nil && !slices.Contains(list, outer) {
			outer = outer.outer
		}
		if outer != nil && is(outer) || slices.ContainsFunc(extents, func(r machine.Range) bool { return r.Contains(c.to.CFA) }) {
			ended = append(ended, c)
		}
	}
	return ended
}

// locate determines the stack on which a thread runs: it gives up the calls that have ended, and sets the call in which the thread is.
func (v *verifier) locate(s machineStack) error {
	if len(v.pending) == 0 || len(s.frames) == 0 {
		return nil
	}
	for _, c := range v.endedCalls(s) {
		if err := v.abandonCall(c); err != nil {
			return err
		}
	}
	v.call = v.enclosing(s, 0)
	return nil
}

// abandonCall gives up a call that has ended without a return, all calls made from it, and the predictions that wait for native calls among these.
func (v *verifier) abandonCall(c *call) error {
	waits := v.endNativeCalls(func(x *nativeCall) bool { return x.call.within(c) })
	var done []*prediction
	for _, p := range v.pending {
		switch {
		case p.call.within(c):
			p.out.notComparable(errors.New(leftWithoutReturn))
		case waits[p]:
			p.out.notComparable(p.leftCallReason())
		default:
			continue
		}
		done = append(done, p)
	}
	err := v.reportDecided(done)
	v.updateCall()
	return err
}

// leftCallReason returns the reason why a prediction ends without a comparison if a non-local jump has left its native call.
func (p *prediction) leftCallReason() error {
	return frame.Errorf("the call of %v was left without a return", calleeOf(p.interp.pending))
}
