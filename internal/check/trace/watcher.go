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

// Watcher reports each exit of a process as [Run] does, for callers that do more there than report it: between the exits the caller controls the
// process, and may run one of its threads and report where that arrived ([Watcher.Arrived]).
type Watcher struct {
	tracer *tracer
	code   []machine.Range // see Code; nil until it is needed
	codeOf int             // the generation of the loaded code for which it was computed
}

// NewWatcher returns a watcher of a stopped process. The argument of each is valid until it returns; its error ends the run.
func NewWatcher(s *ptrace.Session, o Options, each func(*Exited) error) *Watcher {
	return &Watcher{tracer: newTracer(s, o, each)}
}

// Run watches until the process or the trace ends. It calls then after each event, while the process is stopped; its error ends the run and is
// returned.
func (w *Watcher) Run(ctx context.Context, then func() error) error { return w.tracer.run(ctx, then) }

// Stand reads what is loaded, as [Watcher.Run] does when it starts, and sets no breakpoint: it returns those that Run would set. They are for a
// caller that runs one thread at a time, sets and removes them, and reports where that arrived ([Watcher.Arrived]).
func (w *Watcher) Stand() ([]ptrace.Breakpoint, error) {
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
				p.prepare(t.view) // [Tracepoint.Doubtful] is known before anybody comes there
			}
		}
	}
	return insert, err
}

// Unwatched returns how many of the selected records have no breakpoint.
func (w *Watcher) Unwatched() int { return w.tracer.unwatched }

// Standing returns all frames of the process, which is stopped where an exit was reported ([Watcher.Arrived]): the view of the exit's frames, moved
// there.
func (w *Watcher) Standing(x *Exited) (*deopt.View, error) {
	return w.tracer.frames(deopt.Thread{ID: x.Thread.ID, Name: x.Thread.Name, Frames: x.Frames, End: x.End})
}

// View returns the code of the process as of the last update of what is loaded, without frames. Its memory is read on demand. It is nil before
// [Watcher.Run].
func (w *Watcher) View() *deopt.View { return w.tracer.view }

// At are the exits whose breakpoint is at an address.
func (w *Watcher) At(addr machine.Addr) []*Tracepoint {
	if p := w.tracer.places[addr]; p != nil {
		return p.points
	}
	return nil
}

// Arrived handles the arrival of a thread that the caller ran at an address. If exits are watched there, it reports them; if code is loaded there,
// it reads the changes.
func (w *Watcher) Arrived(addr machine.Addr, thread machine.Thread) error {
	if registering, watch := w.tracer.watches[addr]; watch {
		return w.tracer.follow(registering)
	}
	p := w.tracer.places[addr]
	if p == nil {
		return nil
	}
	return w.tracer.hit(p, ptrace.Event{Kind: ptrace.Hit, Time: time.Now(), At: addr, Thread: thread})
}

// Leave takes all breakpoints out, so that the process runs at its own speed to its end, which is all that is reported from then on. Only
// one that becomes another program is watched anew.
func (w *Watcher) Leave() error { return w.tracer.leave() }

func (t *tracer) leave() error {
	return t.session.Remove(slices.Concat(slices.Collect(maps.Keys(t.places)), slices.Collect(maps.Keys(t.watches)))...)
}

// Objects are the objects that a JIT has registered and that can be used.
func (w *Watcher) Objects() iter.Seq[*object.Image] {
	return func(yield func(*object.Image) bool) {
		for e := range w.tracer.objects {
			if img := e.Image(); img != nil && !yield(img) {
				return
			}
		}
	}
}

// Finish warns of functions and records that were pending and never came. It returns how the run ended, at how many places exits may be missing
// because the process has overwritten the breakpoint, and how long the watcher has been running.
func (w *Watcher) Finish() (end End, overwritten uint64, took time.Duration) {
	w.tracer.warnUnnamed()
	return w.tracer.end, uint64(len(w.tracer.overwritten)), time.Since(w.tracer.began)
}

// Code returns the code that the modules describe: native code of that is followed by each instruction. For registered objects it is all code; for
// files, which contain the host too, the functions that the modules define.
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
