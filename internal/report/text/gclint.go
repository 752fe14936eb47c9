package text

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"example.com/reframe/internal/static/gclint"
)

// PrintGCLint prints one line for each finding.
func PrintGCLint(w io.Writer, s Style, r *gclint.Report) error {
	out := bufio.NewWriter(w)
	for _, f := range r.Findings {
		certainty := string(f.Certainty)
		if f.Certainty == gclint.Possible {
			certainty = s.Dim(certainty)
		} else {
			certainty = s.Yellow(certainty)
		}
		fmt.Fprintf(out, "%s: %s: @%s", s.Bold(Printable(fmt.Sprintf("%s:%d", f.File, f.Line))), certainty, Printable(f.Function))
		if f.Block != "" {
			fmt.Fprintf(out, ", block %%%s", Printable(f.Block))
		}
		more := ""
		if f.More > 0 {
			more = "; " + Count(f.More, "further use")
		}
		fmt.Fprintf(out, ": %s%s; %s %s\n", Printable(f.What), more, Printable(f.Do), s.Dim("["+string(f.Rule)+"]"))
	}
	return out.Flush()
}

// GCLintSummary returns the lines with the counts of a report, and with the collectors that are unknown.
func GCLintSummary(r *gclint.Report) string {
	var all strings.Builder
	modules := Printable(strings.Join(r.Modules, ", "))
	for _, c := range r.Unknown {
		fmt.Fprintf(&all, "%s: not checked: %s with gc %q, whose pointers are unknown; give their address space with --gc-pointers %s:addrspace=N\n",
			modules, Count(c.Functions, "function"), c.Name, Printable(c.Name))
	}
	if r.Functions == 0 && len(r.Findings) == 0 {
		if len(r.Unknown) == 0 {
			fmt.Fprintf(&all, "%s: no function with a collector that uses statepoints\n", modules)
		}
		return all.String()
	}
	fmt.Fprintf(&all, "%s: %s, %s, %d certain, %d likely, %d possible\n", modules, Count(r.Functions, "function"), Count(r.Safepoints, "safepoint"),
		r.Count(gclint.Certain), r.Count(gclint.Likely), r.Count(gclint.Possible))
	return all.String()
}
