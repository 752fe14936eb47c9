package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/progspace/goroutine"
	"example.com/reframe/ptrace"
)

// describeGoroutines adds to each thread of a view the goroutine that it runs, if the target is a Go program.
func (a *app) describeGoroutines(t *ptrace.Target, view *deopt.View) {
	r, err := goroutine.Open(t)
	if errors.Is(err, goroutine.ErrNotGo) || errors.Is(err, goroutine.ErrNoDWARF) {
		return
	}
	if err != nil {
		a.note("goroutines are not shown: " + err.Error())
		return
	}
	defer r.Close()
	for _, th := range t.Threads() {
		i := slices.IndexFunc(view.Threads, func(shown deopt.Thread) bool { return shown.ID == th.ID })
		if i < 0 {
			continue
		}
		g, err := r.OfThread(th)
		if err != nil && !errors.Is(err, goroutine.ErrNone) {
			a.note(fmt.Sprintf("the goroutine of thread %d is not shown: %v", th.ID, err))
		}
		view.Threads[i].Goroutine = g
	}
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
