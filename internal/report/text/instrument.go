package text

import (
	"fmt"
	"io"

	"example.com/reframe/internal/static/instrument"
)

// PrintInstrumented prints the number of sites that were inserted into a module, and the omissions.
func PrintInstrumented(w io.Writer, path string, r *instrument.Result) {
	if len(r.Sites) > 0 {
		fmt.Fprintf(w, "%s: %s in %s, ids %d to %d, %s\n", Printable(path), Count(len(r.Sites), "site"), Count(r.Functions(), "function"),
			r.Sites[0].ID, r.Sites[len(r.Sites)-1].ID, Count(r.Values, "value"))
		if n := r.Lacking(); n > 0 {
			fmt.Fprintf(w, "%s without a value that is live there: a frame at one cannot be resumed\n", Count(n, "site"))
		}
	}
	for _, l := range r.Left {
		fmt.Fprintf(w, "left out: %s, %s; the first: %s\n", Count(l.Count, l.What), Printable(l.Why), Printable(l.First))
	}
}
