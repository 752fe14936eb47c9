package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/report/text"
)

// style returns the style of standard output.
func (a *app) style() text.Style { return a.styleOf(a.stdout) }

func (a *app) styleOf(out *os.File) text.Style {
	switch a.color {
	case "always":
		return text.Style{On: true}
	case "never":
		return text.Style{On: false}
	}
	return text.Style{On: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && text.IsTerminal(out)}
}

// sourceFlag adds --source, which makes a verb read all debug information.
func sourceFlag(c *cobra.Command, all *bool) {
	c.Flags().BoolVar(all, "source", false, "show source lines even if reading them takes long")
}

func sourceBudget(all bool) int64 {
	if all {
		return deopt.AllSources
	}
	return deopt.QuickSources
}

// hintSource names a file whose source lines were not read because reading takes long, and counts the other such files.
func (a *app) hintSource(costly []string) {
	if len(costly) == 0 {
		return
	}
	more := ""
	if n := len(costly) - 1; n > 0 {
		more = fmt.Sprintf(" and %s", text.Count(n, "other file"))
	}
	fmt.Fprintf(text.Fold(a.stderr), "\nsource lines of %s%s left out (slow to read); use --source\n", text.Printable(costly[0]), more)
}
