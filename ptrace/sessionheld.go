package ptrace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/holder"
	"example.com/reframe/ptrace/tracer"
)

// ErrLacks is wrapped in the errors of operations that the debugger of a process does not support.
var ErrLacks = holder.ErrLacks

// OpenSession controls a process that another debugger holds. [Session.Detach] resumes the process if the session has resumed it or has set
// breakpoints. Otherwise it only disconnects. The debugger then keeps, resumes or ends the process, as after [OpenHeld].
//
// [Session.Yield] has no effect: the process always waits for this one. The debugger must support [holder.Control].
func OpenSession(s *holder.State, o CoreOptions) (*Session, error) {
	if s.Control == nil {
		return nil, errors.Join(&HeldError{s.Addr, fmt.Errorf("%w: running the process", ErrLacks), ""}, s.Close())
	}
	d := &debugger{control: s.Control, addr: s.Addr, cache: holder.NewCache(s.Memory, s.Mappings != nil), options: o, breakpoints: map[machine.Addr]*heldBreakpoint{}, hits: map[uint64]uint64{}}
	first := *s
	first.Close, first.Control = nil, nil
	base, err := openHeld(&first, o, d.cache, nil)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	session := newSession(base.PID, d)
	session.held, session.base = d, base
	return session, nil
}

// debugger is the driver for a process that another debugger holds.
type debugger struct {
	control holder.Control
	addr    string
	cache   *holder.Cache
	options CoreOptions

	breakpoints map[machine.Addr]*heldBreakpoint
	counting    tracer.Counting
	number      uint64            // number of the last counted hit
	reported    uint64            // number of counted hits that were reported, or would have been without Quiet
	hits        map[uint64]uint64 // hits by address, including those of removed breakpoints
	waiting     []*tracer.Event
	running     bool
	backwards   bool // Event runs the process backwards
	changed     bool // the process has run, or has breakpoints
	ended       bool
}

// heldBreakpoint is a breakpoint with its options.
type heldBreakpoint struct{ tracer.Breakpoint }

// unsupported maps the requests that no debugger supports to names of the operations.
var unsupported = map[tracer.Op]string{
	tracer.Pass: "passing hits of one thread", tracer.Alone: runAlone, tracer.Rseq: runAlone, tracer.Commit: "writing into the process",
}

// runAlone names the operation for which the requests Alone and Rseq are made.
const runAlone = "running one thread while the others are stopped"

// lacks returns the error for an operation that is not supported.
func lacks(what string) error { return fmt.Errorf("%w: %s", ErrLacks, what) }

// Do implements [driver].
func (d *debugger) Do(r tracer.Request) (*tracer.Reply, error) {
	reply := &tracer.Reply{}
	if what, is := unsupported[r.Op]; is {
		return nil, lacks(what)
	}
	switch r.Op {
	case tracer.Hits:
		reply.Hits = d.hits
		return reply, nil
	case tracer.Count:
		d.counting, d.number, d.reported = r.Counting, 0, 0
		return reply, nil
	case tracer.Yield, tracer.Look:
		return reply, nil
	case tracer.Detach:
		return reply, d.leave()
	}
	if d.ended {
		return nil, ErrProcessExited
	}
	switch r.Op {
	case tracer.Stop:
		return reply, d.stop()
	case tracer.LetRun:
		return reply, d.letRun()
	case tracer.Insert:
		return reply, d.insert(r.Breakpoints)
	case tracer.Remove:
		return reply, d.remove(r.Addrs)
	}
	return nil, fmt.Errorf("unknown request %d", r.Op)
}

// DoUntil implements [driver].
func (d *debugger) DoUntil(_ context.Context, r tracer.Request) (*tracer.Reply, error) {
	return d.Do(r)
}

// Send implements [driver]. It does nothing, because Event resumes the process.
func (d *debugger) Send(tracer.Request) error { return nil }

// Waiting implements [driver].
func (d *debugger) Waiting() bool { return len(d.waiting) > 0 }

// Take implements [driver].
func (d *debugger) Take(kind tracer.EventKind) (list []*tracer.Event) {
	d.waiting = slices.DeleteFunc(d.waiting, func(e *tracer.Event) bool {
		if e.Kind == kind {
			list = append(list, e)
		}
		return e.Kind == kind
	})
	return list
}

// TakeAway implements [driver].
func (d *debugger) TakeAway() []*tracer.Event { return d.Take(tracer.Away) }

// Released implements [driver].
func (d *debugger) Released() bool {
	return slices.ContainsFunc(d.waiting, func(e *tracer.Event) bool { return e.Kind == tracer.Away })
}

// Close implements [driver]. It does nothing, because leave has ended the connection.
func (d *debugger) Close() error { return nil }

// insert sets breakpoints. After an error it continues with the other breakpoints.
func (d *debugger) insert(list []tracer.Breakpoint) (err error) {
	if d.running {
		return errRuns
	}
	for _, b := range list {
		d.changed = true
		if one := d.control.Insert(machine.Addr(b.Addr)); one != nil {
			if err == nil {
				err = one
			}
			if errors.Is(one, holder.ErrLost) {
				return err
			}
			continue
		}
		d.breakpoints[machine.Addr(b.Addr)] = &heldBreakpoint{b}
	}
	return err
}

// remove removes breakpoints, and drops their hits that Event has not returned. After an error it continues with the other breakpoints.
func (d *debugger) remove(addrs []uint64) (err error) {
	if d.running && len(addrs) > 0 {
		return errRuns
	}
	for _, a := range addrs {
		if one := d.control.Remove(machine.Addr(a)); one != nil {
			err = errors.Join(err, one)
			if errors.Is(one, holder.ErrLost) {
				return err
			}
			continue
		}
		delete(d.breakpoints, machine.Addr(a))
		d.waiting = slices.DeleteFunc(d.waiting, func(e *tracer.Event) bool { return e.Kind == tracer.Hit && e.Addr == a })
	}
	return err
}

// removeCounted removes the counted breakpoints, or all if all is set.
func (d *debugger) removeCounted(all bool) error {
	var list []uint64
	for a, b := range d.breakpoints {
		if all || !b.Uncounted {
			list = append(list, uint64(a))
		}
	}
	slices.Sort(list)
	return d.remove(list)
}

// resume resumes the process.
func (d *debugger) resume() error {
	d.cache.Forget()
	d.changed = true
	if err := d.control.Resume(); err != nil {
		return err
	}
	d.running = true
	return nil
}

// stop stops the process. If a hit came first, Event returns it later.
func (d *debugger) stop() error {
	if !d.running {
		return nil
	}
	stop, err := d.control.Interrupt()
	if err != nil {
		return err
	}
	d.stopped()
	return d.happened(stop)
}

// stopped records that the process is stopped.
func (d *debugger) stopped() {
	d.running = false
	d.cache.Forget()
}

// letRun removes all breakpoints and resumes the process.
func (d *debugger) letRun() error {
	if d.running {
		if err := d.stop(); err != nil {
			return err
		}
	}
	if err := d.removeCounted(true); err != nil {
		return err
	}
	if err := d.resume(); err != nil {
		return err
	}
	d.waiting = append(d.waiting, &tracer.Event{Kind: tracer.Away, Time: time.Now().UnixNano()})
	return nil
}

// leave removes the breakpoints and resumes the process. If nothing was changed, it only disconnects.
func (d *debugger) leave() error {
	if d.ended || !d.changed {
		return d.control.Disconnect()
	}
	return d.control.Detach()
}

// Event implements [driver].
func (d *debugger) Event(ctx context.Context) (*tracer.Event, error) {
	for len(d.waiting) == 0 {
		if d.ended {
			return nil, ErrProcessExited
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		stop, err := d.move(ctx)
		if err != nil {
			return nil, err
		}
		d.stopped()
		if err := d.happened(stop); err != nil {
			return nil, err
		}
	}
	e := d.waiting[0]
	d.waiting = d.waiting[1:]
	return e, nil
}

// move lets the process run to its next stop, in either direction.
func (d *debugger) move(ctx context.Context) (holder.Stop, error) {
	if d.backwards {
		return d.runBack(ctx, machine.Range{})
	}
	if !d.running {
		if err := d.resume(); err != nil {
			return holder.Stop{}, err
		}
	}
	return d.control.Wait(ctx)
}

// happened adds the events of a stop to the waiting ones. It adds none if the process can be resumed immediately.
func (d *debugger) happened(stop holder.Stop) error {
	e := &tracer.Event{Time: time.Now().UnixNano(), Raw: tracer.Raw{TID: stop.Thread}}
	switch stop.Kind {
	case holder.Exited, holder.Killed:
		d.ended = true
		e.Kind, e.Code, e.Signal = tracer.Ended, stop.Code, stop.Signal
	case holder.Exec:
		clear(d.breakpoints)
		e.Kind = tracer.Exec
	case holder.Hit:
		return d.hit(e, stop.PC)
	default:
		return nil
	}
	d.waiting = append(d.waiting, e)
	return nil
}

// hit adds the events of a hit.
func (d *debugger) hit(e *tracer.Event, pc machine.Addr) error {
	b := d.breakpoints[pc]
	if b == nil {
		return nil
	}
	e.Kind, e.Addr, e.Held = tracer.Hit, uint64(pc), b.Hold
	if b.Uncounted {
		d.waiting = append(d.waiting, e)
		return nil
	}
	d.number++
	d.hits[uint64(pc)]++
	e.Number = d.number
	if every := max(d.counting.Every, 1); d.number%every != 0 {
		return nil
	}
	d.reported++
	if !d.counting.Quiet {
		if err := d.read(e, b); err != nil {
			return err
		}
		d.waiting = append(d.waiting, e)
	}
	if d.counting.Limit > 0 && d.reported == d.counting.Limit {
		hits := slices.Clone(d.waiting)
		if err := d.removeCounted(false); err != nil {
			return err
		}
		d.waiting = append(hits, &tracer.Event{Kind: tracer.LimitReached, Time: e.Time})
	}
	return nil
}

// read reads the memory that a breakpoint requests.
func (d *debugger) read(e *tracer.Event, b *heldBreakpoint) error {
	if len(b.Reads) == 0 {
		return nil
	}
	th, err := d.control.Thread(e.Raw.TID)
	if err != nil {
		return err
	}
	for i, r := range b.Reads {
		part := make([]byte, r.Size)
		if th.Registers != nil {
			if base, err := th.Registers.Addr(machine.DWARFReg(r.Reg)); err == nil {
				if n, err := d.cache.Read(part, base+machine.Addr(r.Offset)); err == nil && n == len(part) {
					e.Got |= 1 << i
				}
			}
		}
		e.Data = append(e.Data, part...)
	}
	return d.cache.Lost()
}

// survey returns the process in its current state. It takes over unchanged data from before, which may be nil.
func (d *debugger) survey(before *Target, given []Object) (*Target, error) {
	state, err := d.control.State()
	if err != nil {
		return nil, &HeldError{d.addr, err, ""}
	}
	o := d.options
	if before == nil { // the process executes another program
		o.Exe, o.Given = "", nil
	}
	d.cache.Forget()
	now, err := openHeld(state, o, d.cache, before)
	if err == nil && before != nil {
		for _, m := range before.Modules { // modules that the new target has not taken over
			m.close()
		}
		before.perf.close()
		if before.sysroot != nil {
			before.sysroot.Close()
		}
	}
	return now, err
}

// heldTarget implements [Session.Target] if another debugger holds the process.
func (s *Session) heldTarget() (*Target, error) {
	d := s.held
	if s.changed && !s.stale && s.base != nil && !s.base.reading().registered() {
		s.stale = true
	}
	if s.changed = false; s.stale || s.base == nil {
		now, err := d.survey(s.base, s.given)
		if err != nil {
			return nil, err
		}
		s.base, s.stale = now, false
	}
	threads, err := d.control.Threads()
	if err != nil {
		return nil, s.failed("cannot read its threads", err)
	}
	t := *s.base
	t.threads = threads
	return &t, nil
}

// registerWord returns the number by which requests to the driver name a register.
func (s *Session) registerWord(reg machine.DWARFReg) (word uint8, ok bool) {
	if s.held != nil {
		return uint8(reg), reg <= 0xff
	}
	return registerWord(reg)
}
