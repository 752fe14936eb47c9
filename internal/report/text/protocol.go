package text

import (
	"fmt"
	"io"
	"strings"

	"example.com/reframe/internal/vm/protocheck"
)

// PrintProtocolCheck prints a check on one line, and its details on the next.
func PrintProtocolCheck(w io.Writer, s Style, r *protocheck.Result) error {
	mark := s.Green("kept  ")
	switch r.Status {
	case protocheck.Broken:
		mark = s.Yellow("BROKEN")
	case protocheck.Not:
		mark = s.Dim("  -   ")
	}
	why := ""
	if r.Why != "" {
		why = "\n          " + Printable(r.Why)
	}
	_, err := fmt.Fprintf(w, "%s  %s%s\n", mark, r.What, why)
	return err
}

// PrintProtocolSummary prints the summary of all checks.
func PrintProtocolSummary(w io.Writer, r *protocheck.Report) error {
	var text strings.Builder
	if x := r.Exit; x != nil {
		fmt.Fprintf(&text, "\nthe exit: %s and %s; it took %s: %s read, %s written, %s allocated\n", Count(x.Frames, "frame"), Count(x.Objects, "object"), Count(x.Requests, "request"),
			Count(x.Ranges, "range"), Count(x.Writes, "range"), Count(x.Allocated, "byte"))
		if x.Again > 0 {
			fmt.Fprintf(&text, "%s it had read before, with no write in between: cache them, since each request is a round trip\n", Count(x.Again, "range"))
		}
	}
	tried, not, why := 0, 0, ""
	for _, c := range r.Checks {
		switch {
		case c.General:
			not, why = not+1, c.Why
		case c.Status != protocheck.Not:
			tried++
		}
	}
	fmt.Fprintf(&text, "\n%s tried, %d broken", Count(tried, "check"), r.Broken)
	if not > 0 {
		fmt.Fprintf(&text, "; %d not tried: %s", not, why)
	}
	text.WriteString("\n")
	_, err := io.WriteString(w, text.String())
	return err
}
