package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"reframe/deopt"
	"reframe/deopt/frame"
	"reframe/internal/fold"
)

// sourceFlag has a verb read all debug information.
func sourceFlag(c *cobra.Command, all *bool) {
	c.Flags().BoolVar(all, "source", false, "show lines of the source also where it takes long to read them")
}

func sourceBudget(all bool) int64 {
	if all {
		return deopt.AllSources
	}
	return deopt.QuickSources
}

// hintSource says of which files the lines were not looked for.
func (a *app) hintSource(costly []string) {
	if len(costly) == 0 {
		return
	}
	more := ""
	if n := len(costly) - 1; n > 0 {
		more = fmt.Sprintf(" and %s", count(n, "other file"))
	}
	fmt.Fprintf(fold.To(a.stderr), "\nlines of the source in %s%s take longer to read: --source\n", printable(costly[0]), more)
}

// lineWidth is how wide a line may become to which something is put.
const lineWidth = 100

func runes(text string) int { return utf8.RuneCountInString(text) }

// sourceLines spells where in the source a frame is, a line for each function that was inlined there, innermost first, and one for
// its own.
func sourceLines(source []frame.Source) (lines []string) {
	for _, p := range source {
		text := "at " + printable(deopt.SourceText(p))
		if p.Inlined {
			text = strings.TrimSpace(printable(p.Function)+" (inlined)") + " " + text
		}
		lines = append(lines, text)
	}
	return lines
}
