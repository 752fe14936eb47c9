package main

import (
	"bytes"
	"io"

	"github.com/spf13/cobra"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/handover"
	"example.com/reframe/internal/check/verify"
	"example.com/reframe/internal/report/text"
	"example.com/reframe/internal/vm/described"
	"example.com/reframe/replay"
)

// scripts returns a runner of scripts whose commands print as the verbs do.
func (a *app) scripts(update, verbose bool) replay.Scripts {
	return replay.Scripts{Update: update, Verbose: verbose, Printer: scriptPrinter{},
		Describe: func(layouts, modules bool, warn func(string)) described.Ask {
			return describer(layouts, modules, "", warn)
		}}
}

// scriptPrinter prints the standard output of a script, without colours.
type scriptPrinter struct{}

func (scriptPrinter) Frames(w io.Writer, v *deopt.View) error {
	return text.PrintView(w, style{}, v)
}

func (scriptPrinter) Frame(w io.Writer, f *frame.Frame) error {
	var b bytes.Buffer
	text.PrintFrame(&b, style{}, f)
	_, err := w.Write(b.Bytes())
	return err
}

func (scriptPrinter) Resumed(w io.Writer, r *frame.Resumed, s *deopt.Stack) error {
	return text.PrintResumed(w, style{}, r, s.Frames)
}

func (scriptPrinter) ResumedWith(w io.Writer, r *frame.Resumed, s *handover.Stack) error {
	return text.PrintResumedWith(w, style{}, r, s.Frames)
}

func (scriptPrinter) Verified(w io.Writer, v *verify.Verified) error {
	b := verifyWriter{exitWriter: &exitWriter{}}
	if v.Status == verify.Different {
		b.difference(v)
	} else {
		b.outcome(v)
	}
	_, err := w.Write(b.line.Bytes())
	return err
}

func (scriptPrinter) Summary(w io.Writer, s *verify.Summary) error {
	_, err := io.WriteString(w, verifiedText(s, &watched{limit: s.Exits}, false))
	return err
}

func (scriptPrinter) JSON(w io.Writer, v any) error { return writeJSON(w, v) }

// scriptsTopic returns the topic of `reframe help scripts`.
func scriptsTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "scripts",
		Short: "The format of replay scripts",
		Long: `A script is a txtar archive. Its first lines are commands, one per line, each of which must
succeed. Files follow, each after a line "-- NAME --". The commands run in a new
folder, $WORK, that contains the files; $SCRIPTDIR is the folder of the script itself. Words
are separated by spaces; 'single quotes' keep spaces and $ as they are. # begins a comment.
A command after ! must fail; a command after [linux] runs only on Linux.

cmp, stdout, stderr, grep, exec, env, exists, cp, skip, stop and others are commands of testscript
(https://pkg.go.dev/github.com/rogpeppe/go-internal/testscript). ` + "`cmp stdout FILE`" + ` compares the
output of the last command with a file of the script; replay --update rewrites the file instead.

Reframe adds these commands:

` + replay.Commands() + `
doc/user/replay.md begins with a failing exit and ends with a committed test.`,
	}
}
