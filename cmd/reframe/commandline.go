package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"reframe/deopt"
	"reframe/internal/fold"
	"reframe/ptrace"
)

// targetFlags are those that say which target is looked at, and fileFlags those that say what is known about its code:
// what the next command about it needs too.
var (
	targetFlags = []string{"pid", "core", "exe", "sysroot", "debug-dir", "stack-bytes"}
	fileFlags   = []string{"ir", "object", "layout"}
)

// given are the flags of these names that were given, with their values, in the order of the names.
func given(flags *pflag.FlagSet, names ...string) (words []string) {
	for _, name := range names {
		f := flags.Lookup(name)
		if f == nil || !f.Changed {
			continue
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		spelled := "--" + name
		if f.Shorthand != "" {
			spelled = "-" + f.Shorthand
		}
		for _, v := range values {
			if f.Value.Type() == "bool" && v == "true" {
				words = append(words, "--"+name)
			} else if f.NoOptDefVal != "" {
				words = append(words, "--"+name+"="+v)
			} else {
				words = append(words, spelled, v)
			}
		}
	}
	return words
}

// commandLine spells a command of this program for a shell.
func commandLine(words ...string) string {
	line := "reframe"
	for _, w := range words {
		line += " " + quoted(w)
	}
	return line
}

// try is the line that proposes a command.
func try(words ...string) string { return "try: " + commandLine(words...) }

const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%"

// quoted spells a word as a shell reads it, a plain sh too, and safe for a terminal.
func quoted(word string) string {
	switch {
	case word != "" && strings.Trim(word, plain) == "":
		return word
	case word == printable(word):
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	// $'...' is of POSIX.1-2024, and Debian's sh does not know it. What printf ends with is lost in line ends.
	text := strings.TrimRight(word, "\n")
	var b strings.Builder
	for _, c := range []byte(text) {
		if c < ' ' || c >= 0x7f || strings.IndexByte(`'"\%`, c) >= 0 {
			fmt.Fprintf(&b, `\%03o`, c)
			continue
		}
		b.WriteByte(c)
	}
	spelled := `"$(printf '` + b.String() + `')"`
	if text != word {
		spelled += "'" + word[len(text):] + "'"
	}
	return spelled
}

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
		_, _ = io.WriteString(fold.To(a.stderr), "\n"+b.String())
	}
}
