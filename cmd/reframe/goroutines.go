package main

import (
	"errors"
	"fmt"
	"slices"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/progspace/goroutine"
	"example.com/reframe/internal/report/text"
	"example.com/reframe/ptrace"
)

// goroutines reads the goroutines of a Go program for a verb.
type goroutines struct {
	parked bool // also goroutines that no thread runs
	reader *goroutine.Reader
	of     goProgram
	err    error
}

// goProgram identifies a Go program in a target. An exec replaces the program of a target while it is captured.
type goProgram struct {
	target *ptrace.Target
	path   string
	size   int64
	entry  machine.Addr
}

func programOf(t *ptrace.Target) goProgram {
	p := goProgram{target: t}
	if m := t.GoProgram(); m != nil {
		p.path = m.Path
		_, p.size = m.File()
		p.entry, _ = m.Image.Start()
	}
	return p
}

// layout opens the debug information of a Go program before the program is stopped, so that more of its goroutines can be copied at the stop.
func (g *goroutines) layout(t *ptrace.Target) *ptrace.GoLayout {
	if g.open(t); g.err != nil {
		return nil
	}
	l, err := g.reader.Layout(g.parked)
	if err != nil {
		return nil // the error is reported when the goroutines are read
	}
	return l
}

// open opens the reader for the program of a target, unless it is already open.
func (g *goroutines) open(t *ptrace.Target) {
	program := programOf(t)
	if g.of == program {
		return
	}
	g.close()
	g.of = program
	g.reader, g.err = goroutine.Open(t)
}

func (g *goroutines) close() {
	if g.reader != nil {
		g.reader.Close()
	}
	g.reader, g.of = nil, goProgram{}
}

// describe adds to each thread of a view the goroutine that it runs, if the target is a Go program, and then adds the parked goroutines.
func (g *goroutines) describe(a *app, t *ptrace.Target, view *deopt.View) error {
	return g.add(t, view, a.note)
}

// add is like describe, and reports omitted goroutines with note.
func (g *goroutines) add(t *ptrace.Target, view *deopt.View, note func(string)) error {
	defer g.close()
	g.open(t)
	switch unknown := errors.Is(g.err, goroutine.ErrNotGo) || errors.Is(g.err, goroutine.ErrNoDWARF); {
	case g.err != nil && g.parked:
		return fmt.Errorf("--goroutines: %w", g.err)
	case unknown:
		return nil
	case g.err != nil:
		note("goroutines are not shown: " + g.err.Error())
		return nil
	}
	for _, th := range t.Threads() {
		running, err := g.reader.OfThread(th)
		if err != nil && !errors.Is(err, goroutine.ErrNone) {
			note(fmt.Sprintf("the goroutine of thread %d is not shown: %v", th.ID, err))
		}
		if i := slices.IndexFunc(view.Threads, func(shown deopt.Thread) bool { return shown.ID == th.ID }); i >= 0 {
			view.Threads[i].Goroutine = running
		}
	}
	if !g.parked {
		return nil
	}
	list, unread, err := g.reader.Parked()
	if err != nil {
		return fmt.Errorf("--goroutines: %w", err)
	}
	frames := 0
	for i := range list {
		p := &list[i]
		if frames >= maxParkedFrames {
			p.Registers, p.Missing = nil, fmt.Sprintf("the goroutines before have %d frames, the limit", frames)
		}
		if err := view.AddParked(&p.Goroutine, p.Registers, p.Missing, p.Memory); err != nil {
			return err
		}
		frames += len(view.Threads[len(view.Threads)-1].Frames)
	}
	if unread > 0 {
		note(fmt.Sprintf("%s not read: the limit is %d, and the list may have grown while the process ran", text.Count(unread, "goroutine"), ptrace.MaxGoroutines))
	}
	return nil
}

// touch reads the goroutines of a target with their stacks, so that a core of the target contains them. Errors are ignored, because the core is also
// useful without goroutines.
func (g *goroutines) touch(t *ptrace.Target) {
	if t.GoProgram() == nil {
		return
	}
	if view, err := deopt.Frames(t, deopt.Options{}); err == nil {
		_ = g.add(t, view, func(string) {})
	}
}

// maxParkedFrames bounds the number of frames of parked goroutines, because each takes some kilobytes of memory.
const maxParkedFrames = 1 << 17
