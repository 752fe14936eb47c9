package trace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/progspace"
	"example.com/reframe/internal/vm/condition"
	"example.com/reframe/internal/vm/described"
	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/ptrace"
)

// Options selects the exits that are reported, and the form of the reports. [deopt.Options].Thread excludes the exits of all other threads.
type Options struct {
	deopt.Options
	ExitFilter
	// Also holds further filters: an exit is selected if any filter selects it. AtReturn applies only to the first.
	Also []ExitFilter
	// At selects functions. If it is not empty, the breakpoints are at their entries instead of the sites of records, and an exit is the frame that
	// calls the function. With Sites the sites of records also get breakpoints.
	At    []*names.Pattern
	Sites bool
	// Entries reports whether the entry of a record's function gets a breakpoint too: [Tracepoint].Entry. If it is nil, no entry does.
	Entries func(function string, record uint64) bool
	Full    bool                 // report all frames of the thread
	Quiet   bool                 // count exits without reporting them
	By      []string             // with Quiet: count exits by these slots too ([Summary].By)
	Every   uint64               // report only every n-th hit; 0 and 1: all
	Limit   uint64               // end the trace after this number of hits that Every selects; 0: no limit
	Stop    *condition.Condition // end the trace at the first exit that fulfils it, and report only that exit; nil: none
	Log     bool                 // with Stop: also report the exits before that exit
	For     time.Duration        // end the trace after this time; 0: no limit
	// Wants reports whether to handle a hit. Other hits are neither reported nor counted. It is called before frames are made, which takes far longer.
	// If it is nil, all hits are handled.
	Wants func(machine.Thread, []*Tracepoint) bool
	// Describe reads the process's description of itself: modules and layouts that the trace uses from then on. If it is nil, the description is not
	// read.
	Describe described.Ask
	// WatchCalls sets further breakpoints where code jumps to the return address of a record's call: at this call and at the jumps. They show whether a
	// thread at that address has made the call. If it has not, the thread is not at an exit. WatchCalls cannot be combined with Every, Limit and Quiet.
	WatchCalls bool
	// Wait is set if a process without such exits may load code with exits later.
	Wait bool
	// Gap is called when the trace resumes after a gap in the exits. Nil: Warn gets its text.
	Gap func(Gap) error
	// visitor compares the roots that a collector visits with the stack maps; see [RunVisitor], which sets it. Nil: none.
	visitor *visitor
	// Warn receives warnings for the user. It is not nil.
	Warn func(string)
}

// tracer is a running trace.
type tracer struct {
	session *ptrace.Session
	options Options
	each    func(*Exited) error
	began   time.Time

	*loaded
	stale      bool                  // the view may have outdated mappings
	generation int                   // number of times that the loaded code was read
	stacks     map[int]*unwind.Stack // the last stack of each thread
	reached    reached
	warned     map[string]bool
	number     uint64 // number of hits that the tracer has counted
	chosen     uint64 // number of hits that count for the limit
	counts
}

// countsHits reports whether the tracer, not the session, counts and selects hits, because the selection depends on more than the place of a hit.
func (t *tracer) countsHits() bool {
	return t.options.Thread != 0 || t.options.Stop != nil || len(t.options.By) > 0
}

// sessionCounts reports whether the session counts hits that it does not report to the tracer.
func (t *tracer) sessionCounts() bool {
	return !t.countsHits() && (t.options.Quiet || t.options.Every > 1)
}

// maxStacks bounds the threads whose stacks are kept.
const maxStacks = 1 << 10

// Run reports each exit as it happens, until the process or the trace ends. The process must be stopped when Run starts; the caller detaches. The
// argument of each is valid until each returns; its error ends the trace and is returned.
//
// The summary is valid even with an error. If ctx is done, the error is its cause.
func Run(ctx context.Context, s *ptrace.Session, o Options, each func(*Exited) error) (*Summary, error) {
	t := newTracer(s, o, each)
	err := t.run(ctx, func() error { return nil })
	if late := t.addSessionHits(); err == nil {
		err = late
	}
	t.warnUnnamed()
	return t.summary(time.Since(t.began)), err
}

func newTracer(s *ptrace.Session, o Options, each func(*Exited) error) *tracer {
	t := &tracer{session: s, options: o, each: each, began: time.Now(), stacks: map[int]*unwind.Stack{}, warned: map[string]bool{}, reached: reached{}}
	t.counts = counts{sites: map[SiteCount]uint64{}, hits: map[machine.Addr]uint64{}}
	t.loaded = newLoaded(&t.options, t.warn)
	return t
}

// run handles events until the trace ends. It calls then after each event.
func (t *tracer) run(ctx context.Context, then func() error) error {
	err := t.untilEnd(ctx, then)
	if t.end.Kind != "" {
		if since := t.session.Away(); !since.IsZero() {
			t.missing += time.Since(since)
		}
	}
	t.reportOverwritten()
	return err
}

func (t *tracer) untilEnd(ctx context.Context, then func() error) error {
	if !t.countsHits() {
		if err := t.session.Count(ptrace.Counting{Every: t.options.Every, Limit: t.options.Limit, Quiet: t.options.Quiet}); err != nil {
			return err
		}
	}
	if err := t.session.Yield(true); err != nil {
		return err
	}
	if err := t.readProcess(); err != nil {
		return err
	}
	if v := t.options.visitor; v != nil && v.Running {
		v.missed(t.view.Target().Threads())
	}
	if err := t.requirePlaces(); err != nil {
		return err
	}
	if id := t.options.Thread; id != 0 && !slices.ContainsFunc(t.view.Target().Threads(), func(th machine.Thread) bool { return th.ID == id }) {
		return deopt.NoThread(t.view.Target(), id)
	}
	if t.session.Stopped() {
		t.warn("process %d is stopped by a signal, and no exit occurs until it continues: kill -CONT %[1]d", t.session.PID())
	}
	next := ctx
	if t.options.For > 0 {
		var cancel context.CancelFunc
		next, cancel = context.WithTimeoutCause(ctx, t.options.For, errTimeUp)
		defer cancel()
	}
	for t.end.Kind == "" {
		ev, err := t.session.Next(next)
		if errors.Is(err, errTimeUp) {
			t.end.Kind = EndTime
			return nil
		}
		if err != nil {
			if ctx.Err() != nil {
				t.end.Kind = EndInterrupted
			}
			return err
		}
		if err = t.event(ev); err == nil {
			err = then()
		}
		// A thread that calls execve ends all others, even those that are stopped at an exit: the next event shows that the process runs another
		// program, or ended.
		if err != nil && !errors.Is(err, ptrace.ErrProcessExited) {
			if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
				t.end.Kind = EndInterrupted
			}
			return err
		}
	}
	return nil
}

// errTimeUp ends a trace when its time is over.
var errTimeUp = errors.New("the time limit was reached")

func (t *tracer) event(ev ptrace.Event) error {
	switch ev.Kind {
	case ptrace.Exec:
		return t.readProcess()
	case ptrace.Ended:
		t.end = EndOf(ev)
		return nil
	case ptrace.LimitReached:
		t.end.Kind = EndLimit
		return nil
	case ptrace.Missed:
		return t.handleOverwritten(ev)
	case ptrace.Away:
		return t.handleAway(ev)
	}
	if v := t.options.visitor; v != nil && v.ends[ev.At] > 0 {
		if err := v.leaves(t, ev); err != nil {
			return err
		}
	}
	if registering, watch := t.watches[ev.At]; watch {
		return t.updateCode(registering)
	}
	// A removed breakpoint may still report a hit from before its removal.
	if p := t.places[ev.At]; p != nil {
		return t.hit(p, ev)
	}
	return nil
}

// hit handles a thread that reached a place.
func (t *tracer) hit(p *place, ev ptrace.Event) error {
	o := &t.options
	if ev.Thread.Registers == nil { // a debugger that holds the process may not provide them
		return fmt.Errorf("the registers of thread %d cannot be read at a breakpoint: %s", ev.Thread.ID, ev.Thread.Missing)
	}
	came := t.reached.at(p, ev.Thread.Registers)
	if len(p.points) == 0 {
		return nil
	}
	if o.visitor != nil {
		return o.visitor.visit(t, p.points, ev)
	}
	if o.Wants != nil && !o.Wants(ev.Thread, p.points) {
		return nil
	}
	number := ev.Number
	if t.countsHits() {
		if o.Thread != 0 && ev.Thread.ID != o.Thread {
			return nil
		}
		t.number++
		number = t.number
	}
	view := t.view
	if ev.Held {
		if err := t.refreshView(); err != nil {
			return err
		}
	} else {
		view = t.view.Reading(&hitMemory{ev.Thread.Registers, p.reads, ev.Data}, &expectedMemory{p.names.parts, t.view.Fixed()})
	}
	chosen := !t.countsHits() || o.Every < 2 || number%o.Every == 0
	report := chosen && !o.Quiet && (o.Stop == nil || o.Log)
	stops := false
	read := &vmlayout.NamesRead{}
	view.CollectNames(read)
	defer view.CollectNames(nil)
	lost := func() bool { return ev.Held && t.session.Released() } // the threads ran meanwhile, so the values may be from different moments
	for _, point := range p.points {
		x := &Exited{Number: number, After: ev.Time.Sub(t.began), Thread: ev.Thread, Point: point, came: came[point]}
		if x.came == byJump && !point.mayPassSite() {
			continue
		}
		err := t.fill(x, view, ev.Thread.Registers)
		if err != nil {
			return err
		}
		x.Stops = o.Stop != nil && t.conditionHolds(o.Stop, x)
		if x.Stops && !o.Full { // the last exit is reported with all frames
			if err := t.walk(x, view, ev.Thread.Registers); err != nil {
				return err
			}
		}
		if lost() {
			return nil
		}
		if !t.sessionCounts() {
			t.count(x)
			t.countBy(x, o.By)
		}
		if x.Stops {
			stops = true
			t.end.Kind = EndStopped
		}
		if report || x.Stops {
			t.countReported(x)
			if err := t.each(x); err != nil {
				return err
			}
		}
	}
	if chosen || stops {
		t.chosen++
	}
	if read.Asked && p.names.read(read, ev.Held) {
		t.changed[ev.At] = true
		insert, _ := t.changes()
		if err := t.session.Insert(insert...); err != nil {
			return err
		}
	}
	if t.countsHits() && o.Limit != 0 && t.chosen == o.Limit && t.end.Kind == "" {
		t.end.Kind = EndLimit
	}
	return nil
}

// fill builds the frame of an exit, or all frames of its thread.
func (t *tracer) fill(x *Exited, v *deopt.View, registers *machine.Registers) (err error) {
	if t.options.Full || x.Point.Symbol != "" || x.Point.Entry {
		return t.walk(x, v, registers)
	}
	physical := unwind.Frame{PC: x.Point.Addr, Registers: registers, Rule: unwind.FromRegisters, NoCFA: "it was not unwound"}
	if x.Frame, err = x.Point.frame(v, physical, x.came); err != nil {
		return err
	}
	return x.readFolded(v, physical)
}

// walk builds all frames of the thread. It reuses the stack of the thread's last exit, which is usually similar.
func (t *tracer) walk(x *Exited, v *deopt.View, registers *machine.Registers) error {
	stack := v.Walk(registers, t.stacks[x.Thread.ID])
	if len(t.stacks) == maxStacks {
		clear(t.stacks)
	}
	t.stacks[x.Thread.ID] = stack
	x.Frames, x.End = nil, stack.End
	left := 0 // index of the frame of the exit
	if x.Point.Symbol != "" {
		left = 1
	}
	all := t.options.Full || x.Stops
	var within *deopt.Frame // nil for frame #0, which is certain
	for n, physical := range stack.Frames {
		var f *deopt.Frame
		var err error
		switch {
		case n == left && left == 0 && !x.Point.Entry:
			if f, err = x.Point.frame(v, physical, x.came); err == nil {
				x.Frame, x.others = f, nil
				err = x.readFolded(v, physical)
			}
		case n == left:
			f, err = t.caller(v, physical, stack.Callee(n), within, registers)
		case all:
			f, err = v.FrameOf(physical, stack.Callee(n), within)
		default:
			continue
		}
		if err != nil {
			return err
		}
		within = f
		if n == left && !x.Point.Entry {
			x.Frame = f
		}
		if all {
			x.Frames = append(x.Frames, f)
		} else if n == left {
			return nil
		}
	}
	return nil
}

// caller builds the calling frame. The callee has not run yet, so even caller-saved registers still hold their values at the call.
func (t *tracer) caller(v *deopt.View, physical unwind.Frame, callee *unwind.Frame, within *deopt.Frame, entry *machine.Registers) (*deopt.Frame, error) {
	if physical.Overwritten != nil { // the overwritten code of the caller may have changed registers before the call
		return v.FrameOf(physical, callee, within)
	}
	regs := entry.Clone()
	regs.SetUint(v.Target().Arch().PC, uint64(physical.PC))
	if sp, err := physical.Registers.Uint(v.Target().Arch().SP); err == nil {
		regs.SetUint(v.Target().Arch().SP, sp)
	}
	physical.Registers = regs
	return v.FrameOf(physical, callee, within)
}

// handleAway sets the breakpoints again that were removed because the events were not read. Code may have been loaded and registered meanwhile.
func (t *tracer) handleAway(ev ptrace.Event) error {
	stopped := t.session.Stop()
	if v := t.options.visitor; v != nil {
		v.forget()
	}
	if err := t.reportGap(ev.Time); err != nil {
		return err
	}
	if stopped != nil {
		return stopped
	}
	err := t.readProcess()
	if v := t.options.visitor; v != nil && err == nil {
		v.missed(t.view.Target().Threads())
	}
	return err
}

// reportGap reports that exits are missing from since until now.
func (t *tracer) reportGap(since time.Time) error {
	g := Gap{since.Sub(t.began), time.Since(since)}
	t.missing += g.Time
	if t.options.Gap != nil {
		return t.options.Gap(g)
	}
	t.warn("%s", g)
	return nil
}

// readProcess reads the code of a new process.
func (t *tracer) readProcess() error {
	if err := t.addSessionHits(); err != nil {
		return err
	}
	t.session.Refresh()
	target, err := t.session.Target()
	if err != nil {
		return err
	}
	if err := t.start(target, t.options.Options); err != nil {
		return err
	}
	clear(t.stacks)
	clear(t.reached)
	if v := t.options.visitor; v != nil {
		v.forget()
		if err := v.registers(t.view.Target().Arch()); err != nil {
			return err
		}
	}
	return t.setBreakpoints(false)
}

// updateCode updates the places after code was loaded, registered or removed. It removes breakpoints in unloaded code before its memory can be
// reused.
func (t *tracer) updateCode(registering bool) error {
	if err := t.addSessionHits(); err != nil {
		return err
	}
	if registering {
		t.session.RefreshRegistered()
	} else {
		t.session.Refresh()
	}
	target, err := t.session.Target()
	if err != nil {
		return err
	}
	t.view.Move(target)
	t.stale = true // MCJIT makes code executable after registering it
	return t.setBreakpoints(true)
}

// setBreakpoints sets the breakpoints for the code that is loaded now.
func (t *tracer) setBreakpoints(fresh bool) error {
	t.generation++
	insert, remove, err := t.update(fresh)
	if err != nil {
		return err
	}
	if v := t.options.visitor; v != nil {
		remove = append(remove, v.dropUnloaded(t)...)
	}
	if err := t.session.Remove(remove...); err != nil {
		return err
	}
	if err := t.session.Insert(insert...); err != nil {
		if !fresh {
			return err
		}
		// An object may claim code at an unmapped address. The error is then only a warning, because the other breakpoints are set. A broken session
		// returns the error again.
		t.warn("%v", err)
	}
	return nil
}

// requirePlaces returns an error if no exit can ever be seen.
func (t *tracer) requirePlaces() error {
	if t.options.Wait {
		return nil
	}
	if !t.atSites { // the functions of a running process exist already; Wait covers code that is loaded later
		lines := t.unnamed()
		if len(t.places) == 0 {
			return fmt.Errorf("%s; use --wait to wait for one", strings.Join(lines, "; "))
		}
		for _, line := range lines {
			t.warn("%s", line)
		}
	}
	if len(t.places) > 0 {
		return nil
	}
	why := t.whyNone()
	for _, registering := range t.watches {
		if registering {
			t.warn("%s; waiting for objects that its JIT registers", why)
			return nil
		}
	}
	return errors.New(why)
}

// whyNone returns the reason why there is no place to watch.
func (l *loaded) whyNone() string {
	if !l.atSites { // these reasons already name the target
		return l.noPlace()
	}
	return fmt.Sprintf("%v: %s", l.view.Target(), l.noPlace())
}

// noPlace returns the reason without the name of the target, except for reasons about names of functions, which contain it.
func (l *loaded) noPlace() string {
	switch {
	case !l.atSites:
		return strings.Join(l.unnamed(), "; ")
	case l.known > 0:
		return fmt.Sprintf("no record is selected (%d known)", l.known)
	}
	return fmt.Sprintf("%v: %s", progspace.ErrNoMaps, progspace.WhyNoMaps(l.view.Target()))
}

// conditionHolds reports whether the condition holds at an exit, and counts exits for which it is undecided.
func (t *tracer) conditionHolds(c *condition.Condition, x *Exited) bool {
	is := x.answer(c)
	switch is {
	case condition.Absent:
		t.absent++
	case condition.Undecided:
		t.undecided++
	}
	return is == condition.Yes
}

// refreshView updates the view to the current state of the process, if its mappings may be outdated. Memory is always read directly.
func (t *tracer) refreshView() error {
	if !t.stale {
		return nil
	}
	t.session.Refresh()
	target, err := t.session.Target()
	if err != nil {
		return err
	}
	t.stale = false
	t.view.Move(target)
	return nil
}

// maxWarnings bounds the warnings about one process, which may run forever.
const maxWarnings = 50

// warn prints each warning once.
func (t *tracer) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	switch {
	case t.warned[text] || len(t.warned) > maxWarnings:
	case len(t.warned) == maxWarnings:
		t.warned[text] = true
		t.options.Warn("further warnings of this kind are omitted")
	default:
		t.warned[text] = true
		t.options.Warn(text)
	}
}
