package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/progspace/goroutine"
	"example.com/reframe/ptrace"
)

// goroutines reads the goroutines of a Go program for a verb.
type goroutines struct {
	parked bool // also those that no thread runs
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
		return nil // reading the goroutines reports it
	}
	return l
}

// open opens the reader for the program of a target, unless it is open.
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

// describe adds to each thread of a view the goroutine that it runs, if the target is a Go program, and then the parked goroutines.
func (g *goroutines) describe(a *app, t *ptrace.Target, view *deopt.View) error {
	defer g.close()
	g.open(t)
	switch unknown := errors.Is(g.err, goroutine.ErrNotGo) || errors.Is(g.err, goroutine.ErrNoDWARF); {
	case g.err != nil && g.parked:
		return fmt.Errorf("--goroutines: %w", g.err)
	case unknown:
		return nil
	case g.err != nil:
		a.note("goroutines are not shown: " + g.err.Error())
		return nil
	}
	for _, th := range t.Threads() {
		running, err := g.reader.OfThread(th)
		if err != nil && !errors.Is(err, goroutine.ErrNone) {
			a.note(fmt.Sprintf("the goroutine of thread %d is not shown: %v", th.ID, err))
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
		a.note(fmt.Sprintf("%s not read: the limit is %d, and the list may have grown while the process ran", count(unread, "goroutine"), ptrace.MaxGoroutines))
	}
	return nil
}

// maxParkedFrames bounds the frames of parked goroutines. A frame takes some kilobytes of memory.
const maxParkedFrames = 1 << 17

// sameStacks returns the parked goroutines whose stacks look the same as text, for the index of the first in threads. The others are in shown.
func sameStacks(threads []deopt.Thread) (groups map[int][]*deopt.Thread, shown map[int]bool) {
	groups, shown = map[int][]*deopt.Thread{}, map[int]bool{}
	first := map[string]int{}
	for i := range threads {
		t := &threads[i]
		shape, plain := shapeOf(t)
		k, again := first[shape]
		switch {
		case !t.Parked() || !plain:
		case again:
			groups[k], shown[i] = append(groups[k], t), true
		default:
			first[shape] = i
		}
	}
	return groups, shown
}

// shapeOf returns a text that is equal for goroutines whose stacks look the same. plain is false for a stack with values or notes.
func shapeOf(t *deopt.Thread) (shape string, plain bool) {
	if !t.Parked() {
		return "", false
	}
	var b strings.Builder
	fmt.Fprintln(&b, t.Goroutine.State, t.Goroutine.Start, t.Goroutine.Labels, t.Total, t.End.Reason) // fmt sorts the keys of a map
	for _, f := range t.Frames {
		if !same(f, f) {
			return "", false
		}
		fmt.Fprintln(&b, f.Index, f.PC, f.Rule)
	}
	return b.String(), true
}

// maxRanges bounds the ranges of numbers that one line lists.
const maxRanges = 8

// alsoThere counts the goroutines that have the stack of the one before, and lists their numbers.
func alsoThere(list []*deopt.Thread) string {
	var ranges []string
	for i := 0; i < len(list); {
		n := i + 1
		for n < len(list) && list[n].Goroutine.ID == list[n-1].Goroutine.ID+1 {
			n++
		}
		text := fmt.Sprint(list[i].Goroutine.ID)
		if n > i+1 {
			text += fmt.Sprintf(" to %d", list[n-1].Goroutine.ID)
		}
		if ranges = append(ranges, text); len(ranges) == maxRanges && n < len(list) {
			ranges = append(ranges, "…")
			break
		}
		i = n
	}
	return fmt.Sprintf("and %s with the same stack: %s", count(len(list), "more goroutine"), strings.Join(ranges, ", "))
}

// titleOfGoroutine names a goroutine, in the form of a traceback of Go.
func titleOfGoroutine(g *frame.Goroutine) string {
	out := fmt.Sprintf("goroutine %d [%s]", g.ID, g.State)
	if g.Start != "" {
		out += " of " + printable(g.Start)
	}
	var labels []string
	for key, value := range g.Labels {
		labels = append(labels, printable(key)+"="+printable(value))
	}
	if len(labels) > 0 {
		slices.Sort(labels)
		out += " {" + strings.Join(labels, ", ") + "}"
	}
	return out
}
