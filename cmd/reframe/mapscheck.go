package main

import (
	"bufio"
	"fmt"

	"example.com/reframe/internal/static/maps"
	"example.com/reframe/internal/vm/vmlayout"
)

// checkMaps prints which rules the stack maps keep. It returns a status of exitPartial if a rule is broken.
func (a *app) checkMaps(m *maps.Maps, vms []*vmlayout.Layout) error {
	report, err := m.Check(vms...)
	if err != nil {
		return err
	}
	if a.json {
		err = writeJSON(a.stdout, report)
	} else {
		err = a.printCheck(report)
	}
	if err == nil && report.Broken() > 0 {
		err = &status{code: exitPartial} // each violation was printed
	}
	return err
}

func (a *app) printCheck(report *maps.CheckReport) error {
	out, s := bufio.NewWriter(foldTo(a.stdout)), a.style()
	for n, i := range report.Images {
		if n > 0 {
			out.WriteByte('\n')
		}
		fmt.Fprintf(out, "%s\n", s.Bold(printable(i.Name)))
		if i.Error != "" {
			fmt.Fprintf(out, "  %s\n", s.Yellow(printable(i.Error)))
		}
		for k := range i.Rules {
			printRule(out, s, &i.Rules[k])
		}
	}
	return out.Flush()
}

func printRule(out *bufio.Writer, s style, r *maps.CheckRule) {
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
		fmt.Fprintf(out, "          %s\n", s.Dim("not checked: "+printable(r.Skipped)))
	}
	if r.Broken == 0 {
		return
	}
	fmt.Fprintf(out, "          because %s\n", printable(r.Fact))
	for _, v := range r.Violations {
		where := ""
		if v.Map != nil && v.Offset != nil {
			where = fmt.Sprintf("map %d, +%#x", *v.Map, *v.Offset)
			if v.Function != "" {
				where += ", " + printable(v.Function)
			}
			where += ": "
		}
		fmt.Fprintf(out, "          %s%s\n", where, printable(v.What))
	}
	if more := r.Broken - len(r.Violations); more > 0 {
		fmt.Fprintf(out, "          and %d more\n", more)
	}
}
