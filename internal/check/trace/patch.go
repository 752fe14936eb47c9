package trace

import (
	"fmt"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/amd64"
	"example.com/reframe/ptrace"
)

// patching grades how likely a process is to overwrite the code at a place, which is the purpose of stackmaps and patchpoints (LLVM, "Stack maps
// and patch points").
type patching int

const (
	unlikely patching = iota
	likely            // the place is a patchpoint, or its code has no effect
	intended          // the module declares the patchable bytes
)

// patching returns the grade of a tracepoint. The grade of an existing call is unlikely, because no module declares that a call is replaced.
func (s *survey) patching(p *Tracepoint) patching {
	if p.Addr != p.match.Entry.Addr || p.match.Kind == ir.StatepointSite || p.match.Kind == ir.DeoptimizeSite {
		return unlikely
	}
	most := unlikely
	for _, site := range p.match.Sites {
		target, constant := site.Callee.(*ir.Const)
		switch {
		case site.PatchBytes == 0:
		case site.Kind == ir.StackMapSite, site.Kind == ir.PatchPointSite && constant && target.Kind == ir.ConstNull:
			return intended
		case site.Kind == ir.PatchPointSite:
			most = likely
		}
	}
	if len(p.match.Sites) > 0 || s.view.Target().Arch() != machine.AMD64 {
		return most
	}
	if inst, known, err := amd64.Read(s.view.Target(), p.Addr); p.match.Kind == ir.PatchPointSite || err == nil && known && amd64.IsFiller(inst) {
		return likely
	}
	return unlikely
}

// handleOverwritten handles a breakpoint that the process has overwritten.
func (t *tracer) handleOverwritten(ev ptrace.Event) (err error) {
	what := func(of string) {
		switch {
		case ev.Thread.ID != 0:
			t.warn("thread %d cannot have the breakpoint of %s, so its exits there are missing: %s", ev.Thread.ID, of, ev.Why)
		case ev.Armed:
			t.warn("the program has overwritten the breakpoint of %s: exits there may be missing until it was set again", of)
		default:
			t.warn("the program has overwritten the breakpoint of %s: later exits there may be missing%s", of, because(ev.Why))
		}
	}
	p, v := t.places[ev.At], t.options.visitor
	var remove []machine.Addr
	end := v != nil && v.ends[ev.At] > 0
	if v != nil {
		remove = v.overwritten(t, ev)
	}
	if len(remove) > 0 {
		err = t.session.Remove(remove...)
	}
	if _, watch := t.watches[ev.At]; watch {
		what(t.view.Space().NameOf(ev.At) + ", by which reframe learns what is loaded")
	} else if end {
		what(t.view.Space().NameOf(ev.At) + ", where a collection ends")
	} else if p == nil {
		return err
	}
	if t.overwritten == nil {
		t.overwritten = map[machine.Addr]bool{}
	}
	t.overwritten[ev.At] = true
	if p == nil {
		return err
	}
	for _, point := range p.points {
		switch {
		case point.Symbol != "":
			what(point.Symbol)
		case point.Function != "":
			what(fmt.Sprintf("record %d at %s+%#x", point.Record, point.Function, point.Offset))
		default:
			what(fmt.Sprintf("record %d at %v", point.Record, point.Addr))
		}
	}
	return err
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return "; it was not set again: " + why
}

// reportOverwritten reports breakpoints that were overwritten since the last check. A process that has ended has reported them before.
func (t *tracer) reportOverwritten() {
	list, err := t.session.Look()
	if err != nil {
		return
	}
	for _, ev := range list {
		_ = t.handleOverwritten(ev) // the trace has ended
	}
}
