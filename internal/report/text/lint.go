package text

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"example.com/reframe/internal/static/lint"
)

// PrintLint prints one line for each finding.
func PrintLint(w io.Writer, s Style, r *lint.Report) error {
	out := bufio.NewWriter(w)
	for n := range r.Findings {
		printFinding(out, s, &r.Findings[n])
	}
	return out.Flush()
}

// LintSummary returns the line with the counts of a report.
func LintSummary(r *lint.Report) string {
	modules := Printable(strings.Join(r.Modules, ", "))
	if r.Sites == 0 {
		return modules + ": no stackmap, patchpoint, statepoint, deoptimize or guard\n"
	}
	return fmt.Sprintf("%s: %s, %d × cannot resume, %s\n", modules, Count(r.Sites, "site"),
		r.Count(lint.CannotResume), Count(r.Count(lint.LintWarning), "warning"))
}

func printFinding(out *bufio.Writer, s Style, f *lint.Finding) {
	place := f.File
	if f.Line > 0 {
		place = fmt.Sprintf("%s:%d", place, f.Line)
	}
	if f.Path != "" {
		place += ": " + f.Path
	}
	severity := string(f.Severity)
	if f.Severity == lint.CannotResume {
		severity = s.Yellow(severity)
	} else {
		severity = s.Dim(severity)
	}
	fmt.Fprintf(out, "%s: %s: ", s.Bold(Printable(place)), severity)
	if f.Site != "" {
		id := ""
		if f.ID != nil {
			id = fmt.Sprintf(" %d", *f.ID)
		}
		fmt.Fprintf(out, "%s%s of @%s, block %%%s: ", f.Site, id, Printable(f.Function), Printable(f.Block))
	}
	more := ""
	switch {
	case f.More == 1:
		more = "; 1 more site has the same mistake"
	case f.More > 1:
		more = fmt.Sprintf("; %d more sites have the same mistake", f.More)
	}
	fmt.Fprintf(out, "%s%s; %s %s\n", Printable(f.What), more, Printable(f.Do), s.Dim("["+string(f.Rule)+"]"))
}
