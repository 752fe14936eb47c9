package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/term"

	"example.com/reframe/internal/report/text"
	"example.com/reframe/replay"
)

// replayWriter writes each result when it is known: data to standard output, and progress to a terminal on standard error.
type replayWriter struct {
	app     *app
	print   *text.ReplayPrinter
	junit   *replay.JUnit
	bar     bool // standard error is a terminal
	shown   bool // the bar is on the screen
	began   time.Time
	drawn   time.Time
	of      int
	done    int
	failed  int
	partial int
}

func newReplayWriter(a *app, k *replayed, items []replay.Item) *replayWriter {
	return &replayWriter{app: a, print: text.NewReplayPrinter(a.style(), items, k.verbose, k.cores), of: len(items), began: time.Now(), bar: term.IsTerminal(int(a.stderr.Fd()))}
}

// ended counts a finished item for the bar.
func (w *replayWriter) ended(o replay.Outcome) {
	w.done++
	switch o {
	case replay.Failed:
		w.failed++
	case replay.Partial:
		w.partial++
	}
	if now := time.Now(); w.bar && now.Sub(w.drawn) > 100*time.Millisecond {
		w.drawn, w.shown = now, true
		text := fmt.Sprintf("%d/%d  %.0f/s", w.done, w.of, float64(w.done)/max(now.Sub(w.began).Seconds(), 1e-3))
		for _, n := range []struct {
			n    int
			what string
		}{{w.partial, "partial"}, {w.failed, "failed"}} {
			if n.n > 0 {
				text += fmt.Sprintf("  %d %s", n.n, n.what)
			}
		}
		fmt.Fprintf(w.app.stderr, "\r\x1b[K%s", text)
	}
}

// clear removes the bar, so that a line can be printed.
func (w *replayWriter) clear() {
	if w.shown {
		fmt.Fprint(w.app.stderr, "\r\x1b[K")
		w.shown = false
	}
}

// result writes one result.
func (w *replayWriter) result(r replay.Result) error {
	w.clear()
	if w.junit != nil {
		if err := w.junit.Add(&r); err != nil {
			return err
		}
	}
	var b bytes.Buffer
	if w.app.json {
		return w.object(struct {
			Schema string `json:"schema"`
			replay.Result
		}{replay.Schema, r})
	}
	w.print.Result(&b, &r)
	_, err := w.app.stdout.Write(b.Bytes())
	return err
}

// object writes one line of JSON.
func (w *replayWriter) object(v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.app.stdout.Write(text.SafeJSON(b.Bytes()))
	return err
}

// close writes the summary and completes the output.
func (w *replayWriter) close(s *replay.Summary) error {
	w.clear()
	var err error
	if w.junit != nil {
		if s.NotRun > 0 { // otherwise the report of an interrupted run would look like a success
			err = w.junit.Add(&replay.Result{Kind: replay.Script, Path: "not run", Outcome: replay.Failed, Message: fmt.Sprintf("%d of %d were not run", s.NotRun, s.Items)})
		}
		err = errors.Join(err, w.junit.Close())
	}
	if w.app.json {
		return errors.Join(err, w.object(struct {
			Schema string `json:"schema"`
			*replay.Summary
		}{replay.SummarySchema, s}))
	}
	var b bytes.Buffer
	w.print.Summary(&b, s)
	_, late := w.app.stdout.Write(b.Bytes())
	if s.Seconds > 0 && len(s.Slowest) > 0 {
		fmt.Fprint(w.app.stderr, text.ReplayTimes(s))
	}
	return errors.Join(err, late)
}
