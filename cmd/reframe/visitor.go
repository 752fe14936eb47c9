package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"example.com/reframe/internal/check/roots"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/report/text"
)

// visitorFlags holds the flags with which trace checks the stack walker of a collector.
type visitorFlags struct {
	function  *names.Pattern // nil: trace reports exits
	collector *names.Pattern // nil: a collection begins at its first visit
	argument  int
	base      int // number of the argument with the address of the base pointer's slot; -1 for none
}

func (v *visitorFlags) add(f *pflag.FlagSet) {
	f.Var(names.Into(&v.function, names.Exact), "visitor", "compare the slots that a collector visits by calling the function with this `NAME`, or /RE/, with the stack maps")
	f.Var(names.Into(&v.collector, names.Exact), "collector", "with --visitor: a collection begins where the function with this `NAME`, or /RE/, is called")
	f.IntVar(&v.argument, "visitor-argument", 0, "with --visitor: argument `N` holds the address of the slot, counted from 0")
	f.IntVar(&v.base, "visitor-base", 0, "with --visitor: argument `N` holds the address of the slot of the base")
}

// functions returns the functions that get breakpoints.
func (v *visitorFlags) functions() []*names.Pattern {
	if v.collector == nil {
		return []*names.Pattern{v.function}
	}
	return []*names.Pattern{v.function, v.collector}
}

// check rejects flags that --visitor cannot be combined with.
func (v *visitorFlags) check(c *cobra.Command, k *traced) error {
	changed := c.Flags().Changed
	if v.function == nil {
		for _, name := range []string{"visitor-argument", "visitor-base", "collector"} {
			if changed(name) {
				return usage("--%s requires --visitor", name)
			}
		}
		return nil
	}
	for _, name := range []string{"at", "record", "function", "site", "full", "count", "by", "every", "stop-at", "log", "lossy"} {
		if changed(name) {
			return usage("--visitor cannot be combined with --%s: it reports collections, not exits", name)
		}
	}
	for _, name := range []string{"visitor-argument", "visitor-base"} {
		if n := map[string]int{"visitor-argument": v.argument, "visitor-base": v.base}[name]; changed(name) && n < 0 {
			return usage("--%s %d: must not be below 0", name, n)
		}
	}
	if v.collector != nil && v.collector.Text == v.function.Text {
		return usage("--collector %s: the function of --visitor is the same", v.collector.Text)
	}
	if !changed("visitor-base") {
		v.base = -1
	}
	if v.argument == v.base {
		return usage("--visitor-base %d: the argument of the slot is the same", v.base)
	}
	return nil
}

// traceVisitor reports the collections of a process.
func (a *app) traceVisitor(ctx context.Context, k *traced, command []string) (err error) {
	out, closed, err := k.created(ctx, a, command)
	if err != nil {
		return err
	}
	defer func() { err = closed(err) }()
	collecting(400)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := newExitWriter(a, out, cancel)
	k.options.Gap, k.options.Warn = w.gap, w.warn
	k.options.Describe, k.options.Mistake = k.describer(w.warn), k.mistaken(w.warn)
	s, err := k.open(ctx, command)
	if err != nil {
		return err
	}
	w.holds(ctx, s.LetRun)
	sum, err := trace.RunVisitor(ctx, s, k.options, trace.VisitorOptions{Argument: k.visitor.argument, Base: k.visitor.base, Running: len(command) == 0, Limit: k.limit, Each: w.collection})
	if late := s.Detach(); err == nil {
		err = late
	}
	end := visitedStatus(sum, err, len(k.mistakes) > 0)
	if a.json {
		w.summary(visitedSummary{sum, end.why()})
	}
	if failed := w.close(); failed != nil {
		return k.writeError(ctx, failed) // the failed write caused the other errors
	}
	if w.alone() {
		return end.silent()
	}
	if by := (interruption{}); err == nil || errors.As(err, &by) || sum.Visits > 0 {
		_ = text.PrintVisited(text.Fold(a.stderr), sum, k.runLimits()) // the error cannot be reported anywhere
	}
	return end.error
}

// visitedSummary is the last object of --json.
type visitedSummary struct {
	*trace.Visited
	Error string `json:"error,omitempty"`
}

// visitedStatus returns the exit status of a trace that ended with err. partial is true if the code was not compiled from a module of --ir.
func visitedStatus(v *trace.Visited, err error, partial bool) ended {
	var by interruption
	switch {
	case errors.As(err, &by):
		return ended{&status{by.status(), ""}}
	case err != nil:
		return ended{err}
	case v.Collections == 0 && v.NoFrames > 0:
		return ended{&status{exitFailed, "no visit was by a thread with a frame at a known statepoint"}}
	case v.Collections == 0 && v.NoneVisited > 0:
		return ended{&status{exitPartial, "no visit was of a slot on the stack; see --visitor-argument"}}
	case v.Collections == 0 && v.BeginUnseen+v.Incomplete > 0:
		return ended{&status{exitPartial, "no collection was seen from its begin to its end"}}
	case v.Collections == 0 && v.Overwritten == 0 && v.Unwatched == 0:
		return ended{&status{exitFailed, "no collection occurred"}}
	case v.Found() > 0 || v.Unavailable > 0 || v.Incomplete > 0 || v.NoFrames > 0 || v.Overwritten > 0 || v.Unwatched > 0 || partial:
		return ended{&status{exitPartial, ""}}
	}
	return ended{}
}

// collection writes the result of one collection.
func (w *exitWriter) collection(c *roots.Collection) error {
	if w.app.json {
		line, err := w.encoded(c)
		if err != nil {
			return err
		}
		return w.writeExit(line)
	}
	w.line.Reset()
	text.PrintCollection(&w.line, w.style, c)
	return w.writeExit(w.line.Bytes())
}
