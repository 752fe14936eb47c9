package text

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/ptrace"
)

// afterwards returns the state of a process after reframe has released it.
func afterwards(stopped bool) string {
	if stopped {
		return "stopped by a signal as before"
	}
	return "running again"
}

// titleOf returns the first line of the output about a target.
func titleOf(s Style, t *ptrace.Target) string {
	switch {
	case t.Provider == ptrace.FromCore:
		return fmt.Sprintf("%s  pid %d  %s   %s", s.Bold("core "+Printable(t.Core)), t.PID, Printable(t.Command), t.Arch().Title)
	case t.Provider != ptrace.FromProcess:
		title := s.Bold(string(t.Provider) + " " + Printable(t.Debugger))
		if t.PID > 0 { // an emulator of a whole machine has no processes
			title += fmt.Sprintf("  pid %d", t.PID)
		}
		if t.Command != "" {
			title += "  " + Printable(t.Command)
		}
		return title + "   " + t.Arch().Title
	}
	stood := "stopped" // a script resumes it later
	if t.Pause > 0 {
		stood = fmt.Sprintf("paused %s, %s", milliseconds(t.Pause), afterwards(t.Stopped))
	}
	return fmt.Sprintf("%s  %s   %s   %s", s.Bold(fmt.Sprintf("pid %d", t.PID)), Printable(t.Command), t.Arch().Title, stood)
}

// titleOfThread returns the title of a thread. Most cores hold only the name of the first thread.
func titleOfThread(t *deopt.Thread) string {
	if t.Parked() {
		return titleOfGoroutine(t.Goroutine)
	}
	title := fmt.Sprintf("thread %d", t.ID)
	if t.Name != "" {
		title += fmt.Sprintf(" %q", Printable(t.Name))
	}
	if t.Goroutine != nil {
		title += "   " + titleOfGoroutine(t.Goroutine)
	}
	return title
}

// PrintView prints a whole view as text.
func PrintView(w io.Writer, s Style, v *deopt.View) error {
	var out strings.Builder
	fmt.Fprintln(&out, titleOf(s, v.Target()))
	for _, note := range v.Notes() {
		fmt.Fprintln(&out, s.Yellow(Printable(note)))
	}
	fmt.Fprintln(&out, summary(v.Summary()))
	for _, line := range sureLines(v.CompiledFrom()) {
		fmt.Fprintln(&out, line)
	}
	also, shown := sameStacks(v.Threads)
	for i := range v.Threads {
		if shown[i] {
			continue
		}
		thread := &v.Threads[i]
		fmt.Fprintf(&out, "\n%s\n", s.Bold(titleOfThread(thread)))
		if len(also[i]) > 0 {
			fmt.Fprintf(&out, "  %s\n", s.Dim(alsoThere(also[i])))
		}
		guesses := map[string]int{} // the first frame with each kind of guess
		omitted := v.OmittedFrames(thread)
		for at := 0; at < len(thread.Frames); at++ {
			f := thread.Frames[at]
			for len(omitted) > 0 && omitted[0].From < f.Index {
				printOmitted(&out, s, &omitted[0])
				omitted = omitted[1:]
			}
			if period, count := repeated(thread.Frames[at:]); count > 0 {
				for _, f := range thread.Frames[at:][:period] {
					PrintFrame(&out, s, &f.Frame)
				}
				printRepeated(&out, s, thread.Frames[at:][:period], count-period)
				at += count - 1
				continue
			}
			kind := f.GuessKind()
			first, said := guesses[kind]
			if kind == "" || !said {
				guesses[kind] = f.Index
				PrintFrame(&out, s, &f.Frame)
				continue
			}
			again := f.Frame
			again.Rule = fmt.Sprintf("%s, a guess like #%d", f.Rule, first)
			again.Notes = f.OtherNotes(func(uint64) bool { return false })
			PrintFrame(&out, s, &again)
		}
		if !thread.End.Complete {
			fmt.Fprintf(&out, "  %s\n", s.Yellow(Printable(thread.End.Reason)))
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d.Nanoseconds())/1e6)
}

func summary(s deopt.Summary) string {
	parts := []string{Count(s.Objects, "JIT object")}
	if s.Read < s.Objects {
		parts[0] += fmt.Sprintf(", %d on a stack", s.Read)
	}
	parts = append(parts, Count(s.Functions, "function"), Count(s.Records, "record"))
	if len(s.Versions) > 0 {
		parts[2] += fmt.Sprintf(" (v%s)", strings.Trim(strings.Join(strings.Fields(fmt.Sprint(s.Versions)), ", v"), "[]"))
	}
	line := strings.Join(parts, " · ")
	switch {
	case s.Scanned && s.Unopened:
		line += " · memory was searched"
	case s.Scanned:
		line += " · nothing registered, memory was searched"
	}
	return line
}

// sureLines returns one line for each module, about the certainty that the code was compiled from it. It names a function that contradicts the
// module, if there is one, or else the function with the strongest evidence. A module without evidence has no line.
func sureLines(all []frame.CompiledFrom) (lines []string) {
	rank := func(f frame.CompiledFrom) int {
		return slices.Index([]sites.Sureness{sites.Contradicted, sites.Certain, sites.Likely, sites.Open}, sites.Sureness(f.Sure))
	}
	var modules []string
	worst := map[string]frame.CompiledFrom{}
	for _, f := range all {
		if known, ok := worst[f.Module]; !ok || rank(f) < rank(known) {
			if worst[f.Module] = f; !ok {
				modules = append(modules, f.Module)
			}
		}
	}
	for _, m := range modules {
		f := worst[m]
		name, function := base(m), "@"+Printable(names.Short(f.Function))
		switch sites.Sureness(f.Sure) {
		case sites.Contradicted:
			lines = append(lines, fmt.Sprintf("%s is not what was compiled: see the warning", name))
		case sites.Certain:
			lines = append(lines, fmt.Sprintf("%s is certainly what was compiled: %s: %s", name, function, Printable(f.Why)))
		case sites.Likely:
			lines = append(lines, fmt.Sprintf("%s is likely what was compiled: %s: %s", name, function, Printable(f.Why)))
		}
	}
	return lines
}

// Paused describes the time for which a process was stopped, and its current state.
func Paused(who string, pause time.Duration, stopped bool) string {
	return fmt.Sprintf("%s was stopped for %s and is %s", who, milliseconds(pause), afterwards(stopped))
}
