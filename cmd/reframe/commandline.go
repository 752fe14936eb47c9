package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/report/text"
)

// targetFlags select the target, and fileFlags the files that describe its code. A suggested command for the same target repeats both.
var (
	targetFlags = []string{"pid", "core", "remote", "delve", "exe", "sysroot", "debug-dir", "stack-bytes"}
	fileFlags   = []string{"ir", "object", "layout"}
)

// given returns those of the named flags that the user set, with their values, in the order of names.
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

// commandLine formats a command of this program for a shell.
func commandLine(words ...string) string {
	line := "reframe"
	for _, w := range words {
		line += " " + quoted(w)
	}
	return line
}

// try returns the line that suggests a command.
func try(words ...string) string { return "try: " + commandLine(words...) }

const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%"

// quoted quotes a word for a shell, including a plain sh, and makes it safe for a terminal.
func quoted(word string) string {
	switch {
	case word != "" && strings.Trim(word, plain) == "":
		return word
	case word == text.Printable(word):
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	// POSIX.1-2024 has $'...', but Debian's sh does not support it. Command substitution removes newlines at the end of printf's output.
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

// hint suggests on standard error what to do after frames were printed: about stacks that were copied only partly, about flags that would name
// values, and about the innermost frame that can be resumed.
func (a *app) hint(flags *pflag.FlagSet, v *deopt.View) {
	var b strings.Builder
	about := slices.Concat(given(flags, targetFlags...), given(flags, fileFlags...))
	in := func(t *deopt.Thread) []string {
		if len(v.Threads) > 1 || flags.Changed("thread") {
			return append(slices.Clone(about), "-t", strconv.Itoa(t.ID))
		}
		return about
	}
	short := func(t deopt.Thread) bool { return !t.Parked() && t.End.Code == frame.MemoryNotCopied }
	if i := slices.IndexFunc(v.Threads, short); i >= 0 && !flags.Changed("hold") {
		fmt.Fprintf(&b, "more of the stack: %s\n", commandLine(slices.Concat([]string{"frames"}, in(&v.Threads[i]), []string{"--hold"})...))
	}
	next := v.Next()
	for _, wanted := range next.Wanted {
		fmt.Fprintf(&b, "%s\n", text.Printable(wanted))
	}
	switch {
	case next.Stack != nil:
		words := slices.Concat([]string{"resume"}, in(next.Stack.Thread), []string{"-f", strconv.Itoa(next.Stack.Frames[0].Index)})
		if next.Awaits != "" {
			fmt.Fprintf(&b, "%s, waits for a call: use --result for its result, of type %s\n", text.Printable(next.Stack.Frames[0].Title()), text.Printable(next.Awaits))
			words = append(words, "--result", next.Result)
		}
		fmt.Fprintln(&b, try(words...))
	case next.Lacking != nil:
		fmt.Fprintln(&b, try(slices.Concat([]string{"explain"}, in(next.Lacking.Thread), []string{"-f", strconv.Itoa(next.Lacking.Frames[0].Index)})...))
	}
	if b.Len() > 0 {
		_, _ = io.WriteString(text.Fold(a.stderr), "\n"+b.String())
	}
}
