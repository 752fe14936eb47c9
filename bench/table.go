package main

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"
)

// row is one comparison. Fields that do not apply are empty.
type row struct {
	what   string
	peer   string
	theirs string
	ours   string
	ratio  string
	target string // text with the target, and whether it was met
}

// against compares two series of durations, ours with that of another tool.
func against(what, peer string, theirs, ours times) row {
	return row{what: what, peer: peer, theirs: spread(theirs), ours: spread(ours), ratio: ratio(ours.median(), theirs.median())}
}

// atMost adds a limit for our median to a row.
func (r row) atMost(ours times, limit time.Duration) row {
	r.target = "at most " + duration(limit) + ": " + verdict(ours.median() <= limit)
	return r
}

// fraction adds a target to a row: our median is at most 1/parts of a peer's.
func (r row) fraction(ours, theirs times, parts int) row {
	r.target = fmt.Sprintf("at most 1/%d: %s", parts, verdict(ours.median()*time.Duration(parts) <= theirs.median()))
	return r
}

func verdict(met bool) string {
	if met {
		return "met"
	}
	return "MISSED"
}

// note stores a remark that is printed below the rows of the section.
func (b *bench) note(format string, args ...any) {
	b.notes = append(b.notes, fmt.Sprintf(format, args...))
}

// print writes rows in aligned columns below a head, and the notes below the rows.
func (b *bench) print(rows ...row) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	for _, r := range append([]row{{"", "peer", "peer's", "reframe", "ratio", "target"}}, rows...) {
		line := strings.Join([]string{r.what, r.peer, r.theirs, r.ours, r.ratio, r.target}, "\t")
		fmt.Fprintln(w, "  "+strings.TrimRight(line, "\t"))
	}
	require.NoError(b, w.Flush())
	for _, n := range b.notes {
		fmt.Println("  note: " + n)
	}
	b.notes = nil
}
