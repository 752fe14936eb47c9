package text

import (
	"fmt"
	"io"
	"strings"

	"example.com/reframe/internal/check/stress"
)

// PrintStress prints the result of a stress run.
func PrintStress(w io.Writer, s Style, r *stress.Report) error {
	_, err := io.WriteString(w, stressText(s, r))
	return err
}

// stressText describes the result of a stress run.
func stressText(s Style, r *stress.Report) string {
	var b strings.Builder
	if r.Stressed != nil {
		fmt.Fprintf(&b, "%s, %d chosen", Count(r.Exits, "exit"), r.Chosen)
		if len(r.Only) == 0 {
			fmt.Fprintf(&b, " with --probability %v --seed %d", r.Probability, r.Seed)
		}
		fmt.Fprintf(&b, ": %d committed, %d left to native code\n", r.Committed, r.Left)
		b.WriteString(reasonLines(r.Reasons, ""))
		b.WriteString(overwritten(r.Overwritten))
	}
	switch r.Status {
	case stress.Same:
		if r.Committed == 0 {
			return b.String()
		}
		fmt.Fprintf(&b, "%s: %s, %s of output\n", s.Green("nothing differs"), r.Stressed.End(), Bytes(r.Stressed.Stdout.Bytes+r.Stressed.Stderr.Bytes))
		return b.String()
	case stress.Undecided:
		return b.String()
	}
	for _, d := range r.Differences {
		stressDifference(&b, s, &d)
	}
	if r.Culprit != nil {
		printCulprit(&b, s, r)
	} else if r.Narrowed != "" {
		fmt.Fprintf(&b, "the exit that causes the difference is unknown: %s\n", Printable(r.Narrowed))
	}
	return b.String()
}

func stressDifference(b *strings.Builder, s Style, d *stress.Difference) {
	where := ""
	if d.Offset != nil {
		where = fmt.Sprintf(", byte %d, in line %d", *d.Offset, d.Line)
	}
	fmt.Fprintf(b, "%s %s%s\n", s.Yellow("different"), d.What, where)
	for _, row := range [][2]string{{"untouched", d.Untouched}, {"stressed", d.Stressed}} {
		fmt.Fprintf(b, "        %-9s  %s\n", row[0], Printable(row[1]))
	}
}

// printCulprit prints the exit that makes the difference.
func printCulprit(b *strings.Builder, s Style, r *stress.Report) {
	c := r.Culprit
	how := "causes the difference alone"
	if !c.Single {
		how = fmt.Sprintf("causes the difference after the %d that were committed before it", c.After)
	}
	fmt.Fprintf(b, "\n%s %s (%s)\n", s.Bold(fmt.Sprintf("exit %v, hit %d of record %d, thread %s", c.Native, c.Hit, c.Record.ID, Printable(c.Thread))), how, Count(r.Reruns, "run")+" more")
	PrintFrame(b, s, c.Frame)
	if c.Resumed != nil {
		printCommitted(b, s, c.Resumed.Committed)
	}
	if c.Core != "" {
		fmt.Fprintf(b, "  core: %s\n  script: %s\n", Printable(c.Core), Printable(c.Script))
	}
	if c.Reproduce != "" {
		fmt.Fprintf(b, "  reproduce: %s\n", c.Reproduce)
	}
	if c.Verify != "" {
		fmt.Fprintf(b, "  compare with native code: %s\n", c.Verify)
	}
}
