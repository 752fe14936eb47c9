package text

import (
	"bufio"
	"fmt"
	"io"

	"example.com/reframe/internal/static/maps"
)

// PrintRules prints the results of the rules for each image, and the violations.
func PrintRules(w io.Writer, s Style, report *maps.CheckReport) error {
	out := bufio.NewWriter(w)
	for n, i := range report.Images {
		if n > 0 {
			out.WriteByte('\n')
		}
		fmt.Fprintf(out, "%s\n", s.Bold(Printable(i.Name)))
		if i.Error != "" {
			fmt.Fprintf(out, "  %s\n", s.Yellow(Printable(i.Error)))
		}
		for k := range i.Rules {
			printRule(out, s, &i.Rules[k])
		}
	}
	return out.Flush()
}

func printRule(out *bufio.Writer, s Style, r *maps.CheckRule) {
	word, painted := "kept", s.Green("kept")
	switch {
	case r.Broken > 0:
		word, painted = "BROKEN", s.Yellow("BROKEN")
	case r.Checked == r.Unknown:
		word, painted = "-", s.Dim("-")
	}
	fmt.Fprintf(out, "  %s %s", pad(word, painted, 7), r.Rule)
	switch {
	case r.Broken > 0:
		fmt.Fprintf(out, "  %d of %d", r.Broken, r.Checked)
	case r.Checked > 0:
		fmt.Fprintf(out, "  %d", r.Checked)
	}
	if r.Unknown > 0 {
		fmt.Fprintf(out, ", %d cannot be checked", r.Unknown)
	}
	fmt.Fprintln(out)
	if r.Skipped != "" {
		fmt.Fprintf(out, "          %s\n", s.Dim("not checked: "+Printable(r.Skipped)))
	}
	if r.Broken == 0 {
		return
	}
	fmt.Fprintf(out, "          because %s\n", Printable(r.Fact))
	for _, v := range r.Violations {
		where := ""
		if v.Map != nil && v.Offset != nil {
			where = fmt.Sprintf("map %d, +%#x", *v.Map, *v.Offset)
			if v.Function != "" {
				where += ", " + Printable(v.Function)
			}
			where += ": "
		}
		fmt.Fprintf(out, "          %s%s\n", where, Printable(v.What))
	}
	if more := r.Broken - len(r.Violations); more > 0 {
		fmt.Fprintf(out, "          and %d more\n", more)
	}
}
