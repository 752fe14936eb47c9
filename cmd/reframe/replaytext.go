package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/report/text"
	"example.com/reframe/replay"
)

// replayWriter writes results as they come: data to standard output, progress to a terminal on standard error.
type replayWriter struct {
	app     *app
	k       *replayed
	style   style
	width   int // width of the column of paths
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

// widestPath bounds the column of paths. A longer path moves the columns after it.
const widestPath = 48

// widestSaying bounds the text about a readable core without --verbose, in characters: some reasons are long.
const widestSaying = 160

func newReplayWriter(a *app, k *replayed, items []replay.Item) *replayWriter {
	w := &replayWriter{app: a, k: k, style: a.style(), of: len(items), began: time.Now(), bar: term.IsTerminal(int(a.stderr.Fd()))}
	for _, i := range items {
		w.width = min(max(w.width, utf8.RuneCountInString(printable(i.Path))), widestPath)
	}
	return w
}

// ended counts an item for the bar.
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

// clear removes the bar, so that a line can take its place.
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
	w.line(&b, &r)
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
	_, err := w.app.stdout.Write(safeJSON(b.Bytes()))
	return err
}

// line formats a result: one line, and more below it where a script failed or with --verbose.
func (w *replayWriter) line(b *bytes.Buffer, r *replay.Result) {
	word, path := string(r.Outcome), printable(r.Path)
	switch r.Outcome {
	case replay.OK:
		word = w.style.Green(pad(word, word, outcomeWidth))
	default:
		word = w.style.Yellow(pad(word, word, outcomeWidth))
	}
	says := w.says(r)
	first, more, _ := strings.Cut(says, "\n")
	if first = printable(first); first != "" {
		if long := []rune(first); r.Found != nil && len(long) > widestSaying && !w.k.verbose {
			first = string(long[:widestSaying]) + "…"
		}
		path = pad(path, path, w.width) + "  " + first
	}
	fmt.Fprintf(b, "%s  %s\n", word, path)
	w.below(b, more)
	if r.Found != nil && w.k.verbose {
		w.exits(b, r.Found)
	}
	w.below(b, r.Log)
}

// outcomeWidth is the width of the longest outcome.
const outcomeWidth = len(replay.Skipped)

// below writes the lines of a text indented below a result.
func (w *replayWriter) below(b *bytes.Buffer, text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(b, "    %s\n", printableLines(strings.TrimRight(line, "\r\n")))
	}
}

// says returns the text after the path of a result: for a core the first exit, the result of resuming it, and the message.
func (w *replayWriter) says(r *replay.Result) string {
	var parts []string
	if f := r.Found; f != nil {
		if len(f.Exits) > 0 {
			where := exitText(&f.Exits[0])
			if more := len(f.Exits) + f.More - 1; more > 0 {
				where += fmt.Sprintf(" (and %d more)", more)
			}
			parts = append(parts, where)
		} else if r.Outcome == replay.OK {
			parts = append(parts, count(f.Frames, "frame")+", none at a recorded site")
		}
		if g := f.Resumed; g != nil {
			parts = append(parts, resumedText(g))
		}
	}
	if r.Message != "" {
		parts = append(parts, r.Message)
	}
	return strings.Join(parts, "  ")
}

// exitText describes the position of a frame and where it resumes.
func exitText(x *replay.Exit) string {
	where := "?"
	if x.Function != "" {
		where = names.Demangled(x.Function)
	}
	if x.Offset != nil {
		where += fmt.Sprintf("+%#x", *x.Offset)
	}
	where += fmt.Sprintf("  record %d, %s", x.Record, x.Site)
	if x.Resume != nil {
		where += " → " + text.ResumePoint(x.Resume)
	}
	return where
}

// resumedText describes the result of a resumed frame.
func resumedText(g *replay.Resumed) string {
	switch {
	case g.ExitCode != nil:
		return fmt.Sprintf("calls exit(%d)", *g.ExitCode)
	case g.Result != nil:
		return fmt.Sprintf("returns %s %s", g.Result.Type, g.Result.Value)
	}
	return "returns nothing"
}

// exits writes everything known about the exits of a core.
func (w *replayWriter) exits(b *bytes.Buffer, f *replay.Found) {
	fmt.Fprintf(b, "    %s, %s, %s\n", printable(f.Arch), count(f.Threads, "thread"), count(f.Frames, "frame"))
	for i := range f.Exits {
		x := &f.Exits[i]
		text := fmt.Sprintf("thread %d #%d  %s  %s", x.TID, x.Frame, exitText(x), count(x.Slots, "slot"))
		if x.Unavailable > 0 {
			text += fmt.Sprintf(", %d unavailable", x.Unavailable)
		}
		fmt.Fprintf(b, "    %s\n", printable(text))
	}
	if f.More > 0 {
		fmt.Fprintf(b, "    and %s more\n", count(f.More, "exit"))
	}
	for _, n := range f.Notes {
		fmt.Fprintf(b, "    (%s)\n", printable(n))
	}
}

// close writes the summary and completes the output.
func (w *replayWriter) close(s *replay.Summary) error {
	w.clear()
	var err error
	if w.junit != nil {
		if s.NotRun > 0 { // otherwise the report of an interrupted run would look successful
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
	w.summary(&b, s)
	_, late := w.app.stdout.Write(b.Bytes())
	if s.Seconds > 0 && len(s.Slowest) > 0 {
		fmt.Fprint(w.app.stderr, w.times(s))
	}
	return errors.Join(err, late)
}

// shownExits bounds the sites that the summary names.
const shownExits = 20

// summary writes the number of each outcome, and the sites at which cores were recorded.
func (w *replayWriter) summary(b *bytes.Buffer, s *replay.Summary) {
	what := "script"
	if w.k.cores {
		what = "core"
	}
	fmt.Fprintf(b, "\n%s: ", count(s.Items-s.PassedOver, what))
	parts := []string{fmt.Sprintf("%d ok", s.OK)}
	for _, n := range []struct {
		n    int
		what string
	}{{s.Partial, "partial"}, {s.Failed, "failed"}, {s.Skipped, "skipped"}, {s.NotRun, "not run"}} {
		if n.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n.n, n.what))
		}
	}
	b.WriteString(strings.Join(parts, ", "))
	if s.PassedOver > 0 {
		fmt.Fprintf(b, "; %s skipped", count(s.PassedOver, "other file"))
	}
	if s.Kept > 0 {
		fmt.Fprintf(b, "; %d from the journal", s.Kept)
	}
	b.WriteByte('\n')
	for _, x := range s.Exits[:min(len(s.Exits), shownExits)] {
		name := x.Function
		if name == "" {
			name = "?"
		}
		fmt.Fprintf(b, "%7d at %s, record %d, %s\n", x.Cores, printable(names.Demangled(name)), x.Record, x.Site.Site)
	}
	if more := len(s.Exits) - shownExits; more > 0 {
		fmt.Fprintf(b, "        and at %s more\n", count(more, "site"))
	}
}

// times returns how long the run took, and which items took longest.
func (w *replayWriter) times(s *replay.Summary) string {
	ran := s.Items - s.NotRun - s.Kept
	out := fmt.Sprintf("in %.2f s, %.0f/s; the slowest: ", s.Seconds, float64(ran)/s.Seconds)
	for i, x := range s.Slowest {
		if i > 0 {
			out += ", "
		}
		out += fmt.Sprintf("%s %.0f ms", printable(x.Path), x.MS)
	}
	return out + "\n"
}
