package text

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"example.com/reframe/internal/machine/names"
	"example.com/reframe/replay"
)

// ReplayPrinter prints the results of replay.
type ReplayPrinter struct {
	style   Style
	width   int  // width of the column of paths
	verbose bool // show every exit of a core
	cores   bool // whether the items are cores or scripts
}

// widestPath bounds the column of paths. A longer path moves the columns after it.
const widestPath = 48

// NewReplayPrinter returns a printer whose column of paths fits the items.
func NewReplayPrinter(s Style, items []replay.Item, verbose, cores bool) *ReplayPrinter {
	w := &ReplayPrinter{style: s, verbose: verbose, cores: cores}
	for _, i := range items {
		w.width = min(max(w.width, utf8.RuneCountInString(Printable(i.Path))), widestPath)
	}
	return w
}

// widestSaying bounds the text about a readable core without --verbose, in characters: some reasons are long.
const widestSaying = 160

// Result prints a result: one line, and more below it if a script failed, or with --verbose.
func (w *ReplayPrinter) Result(b *bytes.Buffer, r *replay.Result) {
	word, path := string(r.Outcome), Printable(r.Path)
	switch r.Outcome {
	case replay.OK:
		word = w.style.Green(pad(word, word, outcomeWidth))
	default:
		word = w.style.Yellow(pad(word, word, outcomeWidth))
	}
	says := w.says(r)
	first, more, _ := strings.Cut(says, "\n")
	if first = Printable(first); first != "" {
		if long := []rune(first); r.Found != nil && len(long) > widestSaying && !w.verbose {
			first = string(long[:widestSaying]) + "…"
		}
		path = pad(path, path, w.width) + "  " + first
	}
	fmt.Fprintf(b, "%s  %s\n", word, path)
	w.below(b, more)
	if r.Found != nil && w.verbose {
		w.exits(b, r.Found)
	}
	w.below(b, r.Log)
}

// outcomeWidth is the width of the longest outcome.
const outcomeWidth = len(replay.Skipped)

// below writes the lines of a text indented below a result.
func (w *ReplayPrinter) below(b *bytes.Buffer, text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(b, "    %s\n", PrintableLines(strings.TrimRight(line, "\r\n")))
	}
}

// says returns the text after the path of a result: for a core the first exit, the result of resuming it, and the message.
func (w *ReplayPrinter) says(r *replay.Result) string {
	var parts []string
	if f := r.Found; f != nil {
		if len(f.Exits) > 0 {
			where := exitText(&f.Exits[0])
			if more := len(f.Exits) + f.More - 1; more > 0 {
				where += fmt.Sprintf(" (and %d more)", more)
			}
			parts = append(parts, where)
		} else if r.Outcome == replay.OK {
			parts = append(parts, Count(f.Frames, "frame")+", none at a recorded site")
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

// exitText describes the position of a frame and the place at which it resumes.
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
		where += " → " + resumePoint(x.Resume)
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

// exits prints all details of the exits of a core.
func (w *ReplayPrinter) exits(b *bytes.Buffer, f *replay.Found) {
	fmt.Fprintf(b, "    %s, %s, %s\n", Printable(f.Arch), Count(f.Threads, "thread"), Count(f.Frames, "frame"))
	for i := range f.Exits {
		x := &f.Exits[i]
		text := fmt.Sprintf("thread %d #%d  %s  %s", x.TID, x.Frame, exitText(x), Count(x.Slots, "slot"))
		if x.Unavailable > 0 {
			text += fmt.Sprintf(", %d unavailable", x.Unavailable)
		}
		fmt.Fprintf(b, "    %s\n", Printable(text))
	}
	if f.More > 0 {
		fmt.Fprintf(b, "    and %s more\n", Count(f.More, "exit"))
	}
	for _, n := range f.Notes {
		fmt.Fprintf(b, "    (%s)\n", Printable(n))
	}
}

// shownExits bounds the sites that the summary names.
const shownExits = 20

// Summary prints the number of each outcome, and the sites at which cores were recorded.
func (w *ReplayPrinter) Summary(b *bytes.Buffer, s *replay.Summary) {
	what := "script"
	if w.cores {
		what = "core"
	}
	fmt.Fprintf(b, "\n%s: ", Count(s.Items-s.PassedOver, what))
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
		fmt.Fprintf(b, "; %s skipped", Count(s.PassedOver, "other file"))
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
		fmt.Fprintf(b, "%7d at %s, record %d, %s\n", x.Cores, Printable(names.Demangled(name)), x.Record, x.Site.Site)
	}
	if more := len(s.Exits) - shownExits; more > 0 {
		fmt.Fprintf(b, "        and at %s more\n", Count(more, "site"))
	}
}

// ReplayTimes returns a text with the duration of the run, and the items that took longest.
func ReplayTimes(s *replay.Summary) string {
	ran := s.Items - s.NotRun - s.Kept
	out := fmt.Sprintf("in %.2f s, %.0f/s; the slowest: ", s.Seconds, float64(ran)/s.Seconds)
	for i, x := range s.Slowest {
		if i > 0 {
			out += ", "
		}
		out += fmt.Sprintf("%s %.0f ms", Printable(x.Path), x.MS)
	}
	return out + "\n"
}
