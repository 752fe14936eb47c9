package trace

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/ptrace"
)

// Watcher reports each exit of a process as [Run] does, for callers that do not only report exits. Between exits the caller controls the process. The
// caller may run one thread itself and report the place at which that thread stopped ([Watcher.HandleHit]).
type Watcher struct {
	tracer *tracer
	code   []machine.Range // the cached result of Code
	codeOf int             // the generation of the loaded code for which the field code was made
}

// NewWatcher returns a watcher of a stopped process. The argument of each is valid until it returns; its error ends the run.
func NewWatcher(s *ptrace.Session, o Options, each func(*Exited) error) *Watcher {
	return &Watcher{tracer: newTracer(s, o, each)}
}

// Run watches until the process or the trace ends. It calls then after each event, while the process is stopped; its error ends the run and is
// returned.
func (w *Watcher) Run(ctx context.Context, then func() error) error { return w.tracer.run(ctx, then) }

// Prepare reads the loaded code, as [Watcher.Run] does at its start, but sets no breakpoints: it returns those that Run would set. It is for a caller
// that runs one thread at a time, inserts and removes the breakpoints, and reports the place at which the thread stopped ([Watcher.HandleHit]).
func (w *Watcher) Prepare() ([]ptrace.Breakpoint, error) {
	t := w.tracer
	t.session.Refresh()
	target, err := t.session.Target()
	if err != nil {
		return nil, err
	}
	if err := t.start(target, t.options.Options); err != nil {
		return nil, err
	}
	clear(t.stacks)
	insert, _, err := t.update(false)
	for _, at := range t.places {
		for _, p := range at.points {
			if p.match != nil {
				p.prepare(t.view) // [Tracepoint.Doubtful] must be known before a thread reaches it
			}
		}
	}
	return insert, err
}

// Unwatched returns the number of selected records without a breakpoint.
func (w *Watcher) Unwatched() int { return w.tracer.unwatched }

// Frames returns all frames of the process, which is stopped at the place of a reported exit ([Watcher.HandleHit]). It updates the view of the exit
// to the current state.
func (w *Watcher) Frames(x *Exited) (*deopt.View, error) {
	return w.tracer.frames(deopt.Thread{ID: x.Thread.ID, Name: x.Thread.Name, Frames: x.Frames, End: x.End})
}

// View returns the code of the process at the last update of the loaded code, without frames. It reads memory on demand. It is nil before
// [Watcher.Run].
func (w *Watcher) View() *deopt.View { return w.tracer.view }

// At returns the exits whose breakpoint is at an address.
func (w *Watcher) At(addr machine.Addr) []*Tracepoint {
	if p := w.tracer.places[addr]; p != nil {
		return p.points
	}
	return nil
}

// Decides reports whether a hit of the breakpoint at an address determines if a later hit is an exit. Such a breakpoint must not be passed without a
// stop.
func (w *Watcher) Decides(addr machine.Addr) bool {
	p := w.tracer.places[addr]
	return p != nil && (len(p.marks) > 0 || slices.ContainsFunc(p.points, func(q *Tracepoint) bool { return q.call != 0 }))
}

// Unseen tells the watcher that a thread runs without stopping at breakpoints. After that it is unknown whether the thread has made the calls that
// WatchCalls watches.
func (w *Watcher) Unseen() { clear(w.tracer.reached) }

// HandleHit handles a thread that the caller ran to an address, where all threads are stopped. If the address has exits, it reports them. If the
// process loads code at this address, it reads the changes of the loaded code.
func (w *Watcher) HandleHit(addr machine.Addr, thread machine.Thread) error {
	if registering, watch := w.tracer.watches[addr]; watch {
		return w.tracer.updateCode(registering)
	}
	p := w.tracer.places[addr]
	if p == nil {
		return nil
	}
	return w.tracer.hit(p, ptrace.Event{Kind: ptrace.Hit, Time: time.Now(), At: addr, Thread: thread, Held: true})
}

// Leave removes all breakpoints, so that the process runs at full speed to its end, which is the only event that is still reported. If the process
// executes another program, that program is watched again.
func (w *Watcher) Leave() error { return w.tracer.leave() }

func (t *tracer) leave() error {
	return t.session.Remove(slices.Concat(slices.Collect(maps.Keys(t.places)), slices.Collect(maps.Keys(t.watches)))...)
}

// Objects yields the usable objects that a JIT has registered.
func (w *Watcher) Objects() iter.Seq[*object.Image] {
	return func(yield func(*object.Image) bool) {
		for e := range w.tracer.objects {
			if img := e.Image(); img != nil && !yield(img) {
				return
			}
		}
	}
}

// Finish warns about functions and records that stayed pending. It returns the end of the run, the number of breakpoints that the process has
// overwritten, and the running time of the watcher. Exits may be missing at overwritten breakpoints.
func (w *Watcher) Finish() (end End, overwritten uint64, took time.Duration) {
	w.tracer.warnUnnamed()
	return w.tracer.end, uint64(len(w.tracer.overwritten)), time.Since(w.tracer.began)
}

// Code returns the code that the modules describe, in which native code is single-stepped. For registered objects it is all code. For files, which
// also contain the host, it is the code of the functions that the modules define.
func (w *Watcher) Code() []machine.Range {
	if w.code != nil && w.codeOf == w.tracer.generation {
		return w.code
	}
	w.code, w.codeOf = []machine.Range{}, w.tracer.generation
	add := func(start machine.Addr, size uint64) {
		w.code = append(w.code, machine.Range{Start: start, End: start + machine.Addr(size)})
	}
	for img := range w.Objects() {
		for _, s := range img.Code() {
			add(s.Loaded(), s.Size)
		}
	}
	for img := range w.tracer.modules {
		for _, f := range w.tracer.view.Modules().Names() {
			if sym, ok := img.Lookup(f); ok {
				add(sym.Addr, sym.Size)
			}
		}
	}
	if found := w.tracer.view.Space().Found; found != nil {
		for _, m := range found.Maps {
			for i := range m.Functions {
				if r, ok := w.tracer.view.Target().Mapping(m.Functions[i].Addr); ok {
					add(r.Start, uint64(r.End-r.Start))
				}
			}
		}
	}
	slices.SortFunc(w.code, func(a, b machine.Range) int { return cmp.Compare(a.Start, b.Start) })
	joined := w.code[:0]
	for _, r := range w.code {
		if n := len(joined); n > 0 && r.Start <= joined[n-1].End {
			joined[n-1].End = max(joined[n-1].End, r.End)
			continue
		}
		joined = append(joined, r)
	}
	w.code = joined
	return joined
}
