package trace

import (
	"context"
	"fmt"
	"slices"
	"time"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/check/roots"
	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
	"example.com/reframe/internal/progspace"
	"example.com/reframe/ptrace"
)

// VisitorOptions describes the function with which a collector visits a root. The first pattern of [Options].At selects the function. The second, if
// there is one, selects the function that collects: a collection then begins at its call, and a walk without a visit is also reported.
type VisitorOptions struct {
	Argument int    // number of the argument that holds the address of the slot, from 0
	Base     int    // number of the argument that holds the address of the base's slot, from 0; -1 for none
	Running  bool   // the process ran before the trace, so that a collection may have begun already
	Limit    uint64 // end after this number of collections; 0: no limit
	Each     func(*roots.Collection) error
}

// VisitedSchema names the JSON of a [Visited].
const VisitedSchema = "reframe.trace.visitor/v1"

// Visited is the report at the end of a trace of a visitor.
type Visited struct {
	Schema      string                    `json:"schema"`
	Collections uint64                    `json:"collections"` // number of compared collections
	Frames      uint64                    `json:"frames"`      // frames at a statepoint, in all collections
	Slots       uint64                    `json:"slots"`       // words that the collector must visit, in all collections
	Visits      uint64                    `json:"visits"`
	Elsewhere   uint64                    `json:"elsewhere"`              // visits of addresses outside of the frames with maps
	Null        uint64                    `json:"null"`                   // slots that held null and were not visited
	NoFrames    uint64                    `json:"no_frames"`              // visits by threads without a frame at a statepoint, which are not compared
	NoneVisited uint64                    `json:"none_visited"`           // collections without a visit of a slot on the stack, which are not compared
	Incomplete  uint64                    `json:"incomplete"`             // collections that the trace did not see as a whole, which are not compared
	BeginUnseen uint64                    `json:"begin_unseen,omitempty"` // collections that may have begun before the trace or in a gap, which are not compared
	Unavailable uint64                    `json:"unavailable"`            // roots whose address is unknown, frames whose roots are not known, and incomplete stacks
	Findings    map[roots.FindingKind]int `json:"findings"`
	Overwritten uint64                    `json:"overwritten,omitempty"`
	Unwatched   float64                   `json:"unwatched_seconds,omitempty"`
	Seconds     float64                   `json:"seconds"`
	End         End                       `json:"end"`
}

// Found returns the number of all findings.
func (v *Visited) Found() (n int) {
	for _, k := range v.Findings {
		n += k
	}
	return n
}

// visitor compares visits with stack maps while a process runs.
type visitor struct {
	VisitorOptions
	slot, base machine.DWARFReg
	hasBase    bool
	lost       bool // a breakpoint was overwritten and not set again, so that no collection is seen as a whole
	collects   bool // a function that collects was selected
	begun      uint64
	open       map[int]*collecting  // by thread
	within     map[int]bool         // threads that may be in a collection whose first visits were not seen
	ends       map[machine.Addr]int // breakpoints at the ends of open collections, with the number of collections that use each
	sum        Visited
}

// collecting is a collection that has begun.
type collecting struct {
	walked      *roots.Walked
	code        *progspace.Objfile // the code of the innermost frame at a statepoint
	partial     *uint64            // counts the collection if its first visits may not have been seen; nil if they were
	pc, cfa, sp machine.Addr       // registers and CFA of the innermost frame at a statepoint
	inner       map[frameID]bool   // the frames inside of that frame, of which none is at a known statepoint
	ends        []machine.Addr     // the return address of the frame's call of the collector, and that call if it is known
}

// frameID identifies a frame at a call.
type frameID struct{ pc, cfa machine.Addr }

// RunVisitor compares the slots that a collector visits with the stack maps, one collection after another, until the process or the trace ends.
//
// A collection is a sequence of visits by a thread while its innermost frame at a statepoint is the same activation at the same call. It ends when
// that call returns or is made again, or at a visit with another innermost frame. With a function that collects, it also ends when the next
// collection begins. The process must be stopped when RunVisitor starts; the caller detaches.
func RunVisitor(ctx context.Context, s *ptrace.Session, o Options, w VisitorOptions) (*Visited, error) {
	v := &visitor{VisitorOptions: w, open: map[int]*collecting{}, within: map[int]bool{}, ends: map[machine.Addr]int{}}
	v.sum = Visited{Schema: VisitedSchema, Findings: map[roots.FindingKind]int{}}
	for _, k := range roots.FindingKinds {
		v.sum.Findings[k] = 0
	}
	o.visitor, o.Limit, v.collects = v, 0, len(o.At) > 1
	t := newTracer(s, o, nil)
	err := t.run(ctx, func() error { return nil })
	ended := t.end.Kind == EndExited || t.end.Kind == EndKilled
	for tid := range v.open {
		if t.end.Kind == EndLimit || t.end.Kind == EndTime { // the user has chosen this end
			continue
		}
		if !ended {
			v.sum.Incomplete++
		} else if late := v.end(t, tid, true); err == nil {
			err = late
		}
	}
	t.warnUnnamed()
	v.sum.Overwritten, v.sum.Unwatched, v.sum.Seconds, v.sum.End = uint64(len(t.overwritten)), t.missing.Seconds(), time.Since(t.began).Seconds(), t.end
	return &v.sum, err
}

// registers finds the registers of the arguments.
func (v *visitor) registers(arch *machine.Arch) error {
	var ok bool
	if v.slot, ok = abi.PointerArgument(v.Argument, arch); !ok {
		return fmt.Errorf("argument %d of the visitor is not in a register that is known on %s", v.Argument, arch.Title)
	}
	if v.hasBase = v.Base >= 0; v.hasBase {
		if v.base, ok = abi.PointerArgument(v.Base, arch); !ok {
			return fmt.Errorf("argument %d of the visitor is not in a register that is known on %s", v.Base, arch.Title)
		}
	}
	return nil
}

// visit handles a thread that has called the visitor or the function that collects.
func (v *visitor) visit(t *tracer, points []*Tracepoint, ev ptrace.Event) error {
	if id := t.options.Thread; id != 0 && ev.Thread.ID != id {
		return nil
	}
	if err := t.refreshView(); err != nil {
		return err
	}
	regs := ev.Thread.Registers
	tid := ev.Thread.ID
	stack := t.view.Walk(regs, t.stacks[tid])
	if len(t.stacks) == maxStacks {
		clear(t.stacks)
	}
	t.stacks[tid] = stack
	if ev.Held && t.session.Released() { // the thread ran meanwhile, so the stack may be of several moments; Away follows
		return nil
	}
	c := v.open[tid]
	collects := slices.ContainsFunc(points, func(p *Tracepoint) bool { return p.by == 1 })
	same := c != nil && !collects && c.isInnermost(t.view, stack)
	if c != nil && !same {
		if err := v.end(t, tid, false); err != nil || t.end.Kind != "" {
			return err
		}
	}
	if !same {
		var err error
		if c, err = v.begin(t, ev, stack); err != nil || c == nil || ev.Held && t.session.Released() {
			return err
		}
	}
	if !same && v.lost {
		c.partial = &v.sum.Incomplete
	}
	if collects {
		c.walked.Called()
		delete(v.within, tid)
		return nil
	}
	if !same && c.partial == nil {
		c.partial = v.counterOfPartial(tid)
	}
	delete(v.within, tid)
	slot, err := regs.Uint(v.slot)
	if err != nil {
		return err
	}
	base := uint64(0)
	if v.hasBase {
		if base, err = regs.Uint(v.base); err != nil {
			return err
		}
	}
	v.sum.Visits++
	c.walked.Visit(slot, base)
	return nil
}

// counterOfPartial returns the counter for a collection that begins at a visit; nil if the visit is certainly its first.
func (v *visitor) counterOfPartial(tid int) *uint64 {
	switch {
	case v.collects: // the call of the function that collects was not seen
		return &v.sum.Incomplete
	case v.within[tid]:
		return &v.sum.BeginUnseen
	}
	return nil
}

// missed notes that visits by threads that run now may not have been seen.
func (v *visitor) missed(threads []machine.Thread) {
	for _, th := range threads {
		v.within[th.ID] = true
	}
}

// isInnermost reports whether the innermost frame at a record is still that of the collection.
func (c *collecting) isInnermost(v *deopt.View, stack *unwind.Stack) bool {
	for k := range stack.Frames {
		f := &stack.Frames[k]
		if f.PC == c.pc && f.NoCFA == "" && f.CFA == c.cfa {
			return true
		}
		if c.inner[frameID{f.PC, f.CFA}] {
			continue
		}
		if code := v.Space().At(f.Lookup()); code != nil && code.Records != nil && code.Records.At(f.PC).Len() > 0 {
			return false
		}
	}
	return false
}

// begin begins a collection at its first visit. It returns nil if the thread has no frame at a statepoint, or if its place is uncertain.
func (v *visitor) begin(t *tracer, ev ptrace.Event, stack *unwind.Stack) (*collecting, error) {
	frames := make([]*deopt.Frame, 0, len(stack.Frames))
	var within *deopt.Frame
	for n, physical := range stack.Frames {
		f, err := t.view.FrameOf(physical, stack.Callee(n), within)
		if err != nil {
			return nil, err
		}
		frames, within = append(frames, f), f
	}
	arch := t.view.Target().Arch()
	w := roots.NewWalked(frames, stack, t.view.Target())
	if w == nil {
		v.sum.NoFrames++
		return nil, nil
	}
	if len(v.open) == maxStacks {
		if err := v.dropThreads(t); err != nil {
			return nil, err
		}
		if len(v.open) == maxStacks {
			v.sum.Incomplete++
			return nil, nil
		}
	}
	is := w.Innermost.Physical()
	sp, err := is.Registers.Addr(arch.SP)
	if err != nil || is.NoCFA != "" {
		v.sum.NoFrames++
		return nil, nil
	}
	v.begun++
	w.Begin(v.begun, seconds(ev.Time.Sub(t.began)), ev.Thread)
	c := &collecting{walked: w, pc: is.PC, cfa: is.CFA, sp: sp, inner: map[frameID]bool{}, ends: []machine.Addr{is.PC}}
	for k := range w.Innermost.Index {
		if f := &stack.Frames[k]; f.NoCFA == "" {
			c.inner[frameID{f.PC, f.CFA}] = true
		}
	}
	if code := w.Innermost.Code(); code != nil {
		c.code = code
		way := sweep{text: isa.NewWindow(t.view.Target(), isa.Of(arch)), at: code.SymbolAt(is.Lookup()).Owner}
		if _, call := way.to(is.PC); call != 0 {
			c.ends = append(c.ends, call)
		}
	}
	v.open[ev.Thread.ID] = c
	var insert []ptrace.Breakpoint
	for _, at := range c.ends {
		_, watch := t.watches[at]
		if v.ends[at]++; v.ends[at] == 1 && t.places[at] == nil && !watch {
			insert = append(insert, ptrace.Breakpoint{Addr: at, Uncounted: true})
		}
	}
	return c, t.session.Insert(insert...)
}

// leaves is called when a thread has reached the return address or the call at which its collection ends.
func (v *visitor) leaves(t *tracer, ev ptrace.Event) error {
	c := v.open[ev.Thread.ID]
	if c == nil || ev.Thread.Registers == nil || !slices.Contains(c.ends, ev.At) {
		return nil
	}
	sp, err := ev.Thread.Registers.Addr(t.view.Target().Arch().SP)
	if err != nil {
		return err
	}
	if sp < c.sp { // a deeper activation of the same function
		return nil
	}
	return v.end(t, ev.Thread.ID, false)
}

// drop drops the collection of a thread, which cannot be seen as a whole, and returns the breakpoints that no other collection needs.
func (v *visitor) drop(t *tracer, tid int) []machine.Addr {
	v.sum.Incomplete++
	v.within[tid] = true
	return v.take(t, tid)
}

// dropThreads drops the collections of threads that have ended.
func (v *visitor) dropThreads(t *tracer) error {
	t.session.Refresh()
	target, err := t.session.Target()
	if err != nil {
		return err
	}
	t.view.Move(target)
	lives := map[int]bool{}
	for _, th := range target.Threads() {
		lives[th.ID] = true
	}
	var remove []machine.Addr
	for tid := range v.open {
		if !lives[tid] {
			remove = append(remove, v.drop(t, tid)...)
			delete(v.within, tid)
		}
	}
	return t.session.Remove(remove...)
}

// dropUnloaded drops the collections whose innermost frame was in code that is no longer loaded, and returns their breakpoints: other code may reuse the
// memory.
func (v *visitor) dropUnloaded(t *tracer) (remove []machine.Addr) {
	for tid, c := range v.open {
		if c.code == nil {
			continue
		}
		if now := t.view.Space().At(c.pc - 1); now == nil || now.Image != c.code.Image {
			remove = append(remove, v.drop(t, tid)...)
		}
	}
	return remove
}

// overwritten handles a breakpoint of a collection or of the visitor that the process has overwritten: visits, or the end of a collection, may not have
// been seen. It returns the breakpoints to remove.
func (v *visitor) overwritten(t *tracer, ev ptrace.Event) (remove []machine.Addr) {
	all := t.places[ev.At] != nil
	for tid, c := range v.open {
		if all || slices.Contains(c.ends, ev.At) {
			remove = append(remove, v.drop(t, tid)...)
		}
	}
	if all {
		v.missed(t.view.Target().Threads())
		v.lost = v.lost || !ev.Armed
	}
	return remove
}

// end ends the collection of a thread and reports it.
func (v *visitor) end(t *tracer, tid int, cut bool) error {
	c := v.open[tid]
	remove := v.take(t, tid)
	var err error
	if c.partial != nil {
		*c.partial++
	} else {
		err = v.report(t, c.walked.End(cut, len(c.ends) > 1))
	}
	if err != nil || cut {
		return err
	}
	return t.session.Remove(remove...)
}

// take removes the collection of a thread from the open ones, and returns the breakpoints that no other collection needs.
func (v *visitor) take(t *tracer, tid int) (remove []machine.Addr) {
	c := v.open[tid]
	delete(v.open, tid)
	for _, at := range c.ends {
		_, watch := t.watches[at]
		if v.ends[at]--; v.ends[at] == 0 {
			delete(v.ends, at)
			if t.places[at] == nil && !watch {
				remove = append(remove, at)
			}
		}
	}
	return remove
}

// report adds a collection to the summary.
func (v *visitor) report(t *tracer, c *roots.Collection) error {
	s := &v.sum
	s.Elsewhere += uint64(c.Elsewhere)
	if c.NoneVisited {
		s.NoneVisited++
		return nil
	}
	s.Collections++
	s.Frames += uint64(c.Frames)
	s.Slots += uint64(c.Slots)
	s.Null += uint64(c.Null)
	s.Unavailable += uint64(c.Unavailable)
	if c.End != "" {
		s.Unavailable++
	}
	for k := range c.Findings {
		s.Findings[c.Findings[k].Kind]++
	}
	if s.Collections == v.Limit && t.end.Kind == "" {
		t.end.Kind = EndLimit
	}
	return v.Each(c)
}

// forget drops the open collections, some of whose visits were not seen. Their breakpoints are already removed.
func (v *visitor) forget() {
	v.sum.Incomplete += uint64(len(v.open))
	clear(v.open)
	clear(v.within)
	clear(v.ends)
	v.lost = false
}
