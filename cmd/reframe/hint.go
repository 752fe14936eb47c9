package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"reframe/deopt"
	"reframe/ptrace"
)

// hint says on standard error what to do next with a view that was printed: about stacks of which too little was copied,
// about what would name values, and with the innermost frame that can be resumed.
func (a *app) hint(flags *pflag.FlagSet, v *deopt.View) {
	var b strings.Builder
	about := slices.Concat(given(flags, targetFlags...), given(flags, fileFlags...))
	in := func(t *deopt.Thread) []string {
		if len(v.Threads) > 1 || flags.Changed("thread") {
			return append(slices.Clone(about), "-t", strconv.Itoa(t.ID))
		}
		return about
	}
	short := func(t deopt.Thread) bool { return strings.Contains(t.End.Reason, ptrace.NotCopied) }
	if i := slices.IndexFunc(v.Threads, short); i >= 0 && !flags.Changed("hold") {
		fmt.Fprintf(&b, "more of the stack: %s\n", commandLine(slices.Concat([]string{"frames"}, in(&v.Threads[i]), []string{"--hold"})...))
	}
	next := v.Next()
	for _, wanted := range next.Wanted {
		fmt.Fprintf(&b, "%s\n", printable(wanted))
	}
	switch {
	case next.Stack != nil:
		words := slices.Concat([]string{"resume"}, in(next.Stack.Thread), []string{"-f", strconv.Itoa(next.Stack.Frames[0].Index)})
		if next.Awaits != "" {
			fmt.Fprintf(&b, "%s, waits for a call: --result says what it returns, of type %s\n", printable(next.Stack.Frames[0].Title()), printable(next.Awaits))
			words = append(words, "--result", next.Result)
		}
		fmt.Fprintln(&b, try(words...))
	case next.Lacking != nil:
		fmt.Fprintln(&b, try(slices.Concat([]string{"explain"}, in(next.Lacking.Thread), []string{"-f", strconv.Itoa(next.Lacking.Frames[0].Index)})...))
	}
	if b.Len() > 0 {
		_, _ = io.WriteString(folded(a.stderr), "\n"+b.String())
	}
}
