package truth_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A row of the campaign's table holds the results of one machine and release.
type row struct {
	machine string
	version int
	*tally
}

// table formats the results of a campaign: one line for each machine and release, and the reasons of unavailable values, per thousand values that
// have a slot.
func table(rows []row) string {
	var out strings.Builder
	all := newTally()
	fmt.Fprintf(&out, "%-8s %4s %8s %8s %9s %9s %10s %9s %8s %7s %6s %6s\n",
		"machine", "LLVM", "programs", "refused", "innermost", "outer", "values ok", "unavail.", "undef", "frames-", "wrong", "stuck")
	line := func(machine, version string, y *tally) {
		fmt.Fprintf(&out, "%-8s %4s %8d %8d %9d %9d %10d %9d %8d %7d %6d %6d\n",
			machine, version, y.Programs, y.Refused, y.Exits, y.Outer, y.Values, sum(y.Reasons), y.Undefined, sum(y.Frames), y.Wrong, y.Stuck)
	}
	for _, r := range rows {
		line(r.machine, fmt.Sprint(r.version), r.tally)
		all.add(r.tally)
	}
	line("all", "", all)
	slots := max(1, all.Values+sum(all.Reasons)+all.Undefined+all.Wrong)
	for _, l := range []struct {
		title string
		of    map[string]int
		whole int
	}{
		{"values that are unavailable, in percent of all", all.Reasons, slots},
		{"frames of which nothing is shown, in percent of all", all.Frames, max(1, all.Exits+all.Outer)},
		{"exits by the kind of site, in percent of all", all.Kinds, max(1, all.Exits+all.Outer)},
		{"exits that a layout describes, in percent of all", all.Exited, max(1, all.Exits+all.Outer)},
		{"programs that a tool did not take, in percent of those it did", all.Tools, max(1, all.Programs)},
	} {
		fmt.Fprintf(&out, "%s:\n", l.title)
		for _, why := range slices.SortedFunc(maps.Keys(l.of), func(a, b string) int { return cmp.Or(l.of[b]-l.of[a], cmp.Compare(a, b)) }) {
			fmt.Fprintf(&out, "  %7.3f  %8d  %s\n", 100*float64(l.of[why])/float64(l.whole), l.of[why], why)
		}
	}
	return out.String()
}

func sum(m map[string]int) (n int) {
	for _, k := range m {
		n += k
	}
	return n
}
