package text

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/ptrace"
)

// TraceEnd holds the facts that the summary of a trace shows in addition to its counts.
type TraceEnd struct {
	Limits   Limits
	Stop     string   // the condition of --stop-at
	Quiet    bool     // exits were only counted
	By       []string // the names of --by
	Dropped  uint64   // number of exits that were not shown because the output was not read fast enough
	Nameless bool     // neither the user nor the target gave a module or a layout, from which slots get their names
}

// PrintTraced prints the result of a trace.
func PrintTraced(w io.Writer, s *trace.Summary, k TraceEnd) error {
	var b strings.Builder
	dropped := k.Dropped
	fmt.Fprintf(&b, "%s", Count(int(s.Exits), "exit"))
	if shown := s.Reported - dropped; shown != s.Exits && !k.Quiet {
		fmt.Fprintf(&b, ", %d shown", shown)
	}
	end := Ending(s.End, k.Limits)
	if s.End.Kind == trace.EndStopped {
		end = "stopped at " + k.Stop
	}
	fmt.Fprintf(&b, " in %.3f s; %s\n", s.Seconds, end)
	if len(s.Sites) > 0 {
		rows := [][]string{}
		for _, x := range s.Sites[:min(len(s.Sites), shownSites)] {
			where := fmt.Sprintf("%s+%#x", Printable(names.Demangled(x.Function)), x.Offset)
			if x.Function == "" {
				where = string(x.Address)
			}
			if x.Site == "" {
				rows = append(rows, []string{fmt.Sprint(x.Count), where, "no record"})
				continue
			}
			rows = append(rows, []string{fmt.Sprint(x.Count), where, fmt.Sprintf("record %d, %s", x.Record, x.Site)})
		}
		printRows(&b, rows, len(s.Sites)-len(rows), "site")
	}
	if len(s.Functions) > 0 && len(s.Sites) > len(s.Functions) {
		rows := [][]string{}
		for _, x := range s.Functions[:min(len(s.Functions), shownSites)] {
			rows = append(rows, []string{fmt.Sprint(x.Count), cmp.Or(Printable(names.Demangled(x.Function)), string(x.Address)), ""})
		}
		printRows(&b, rows, len(s.Functions)-len(rows), "function")
	}
	if len(s.By) > 0 {
		rows := [][]string{{"", strings.Join(k.By, ", "), ""}}
		for _, x := range s.By[:min(len(s.By), shownSites)] {
			values := []string{}
			for _, v := range x.Values {
				values = append(values, Printable(cmp.Or(v, "-")))
			}
			rows = append(rows, []string{fmt.Sprint(x.Count), strings.Join(values, ", "), ""})
		}
		printRows(&b, rows, len(s.By)-len(rows)+1, "combination")
	}
	if s.Unavailable > 0 {
		fmt.Fprintf(&b, "%s unavailable\n", Count(int(s.Unavailable), "value"))
	}
	b.WriteString(overwritten(s.Overwritten))
	if dropped > 0 {
		fmt.Fprintf(&b, "%s dropped by --lossy: the output was not read fast enough\n", Count(int(dropped), "exit"))
	}
	b.WriteString(unwatched(s.Unwatched))
	if s.Undecided > 0 {
		fmt.Fprintf(&b, "the condition could not be evaluated at %s: a value in it was unavailable\n", Count(int(s.Undecided), "exit"))
	}
	if s.Absent > 0 {
		fmt.Fprintf(&b, "%s had no slot that the condition names", Count(int(s.Absent), "exit"))
		if k.Nameless {
			b.WriteString(": names of slots come from a module or a layout, given by --ir or --layout or contained in the target")
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// overwritten returns the line about exits that may be missing, or "".
func overwritten(places uint64) string {
	if places == 0 {
		return ""
	}
	return fmt.Sprintf("exits may be missing: the program has overwritten breakpoints at %s\n", Count(int(places), "place"))
}

// unwatched returns the line about exits that are missing, or "".
func unwatched(seconds float64) string {
	if seconds == 0 {
		return ""
	}
	return fmt.Sprintf("exits are missing: without breakpoints for %.3f s, while reframe was stopped or its output was not read\n", seconds)
}

// shownSites bounds the lines of each table of a summary.
const shownSites = 20

func printRows(b *strings.Builder, rows [][]string, more int, what string) {
	wide := [2]int{}
	for _, r := range rows {
		wide[0], wide[1] = max(wide[0], len(r[0])), max(wide[1], utf8.RuneCountInString(r[1]))
	}
	for _, r := range rows {
		b.WriteString(strings.TrimRight(fmt.Sprintf("  %*s  %s  %s", wide[0], r[0], pad(r[1], r[1], wide[1]), r[2]), " ") + "\n")
	}
	if more > 0 {
		fmt.Fprintf(b, "  and %s more\n", Count(more, what))
	}
}

// Limits holds the limits that a user set for a run.
type Limits struct {
	Exits uint64
	Time  time.Duration
}

// Ending describes the reason for the end of a run that watched a process.
func Ending(e trace.End, l Limits) string {
	switch e.Kind {
	case trace.EndExited:
		return fmt.Sprintf("the process exited with status %d", e.ExitCode)
	case trace.EndKilled:
		return fmt.Sprintf("the process was killed by %s", ptrace.SignalName(e.Signal))
	case trace.EndLimit:
		return fmt.Sprintf("the limit of %d was reached", l.Exits)
	case trace.EndTime:
		return fmt.Sprintf("the time limit of %v was reached", l.Time)
	case trace.EndInterrupted:
		return "interrupted"
	}
	return "it failed"
}
