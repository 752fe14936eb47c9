package main

import (
	"github.com/spf13/cobra"

	"example.com/reframe/internal/report/text"
	"example.com/reframe/internal/vm/described"
	"example.com/reframe/replay"
)

// scripts returns a runner of scripts whose commands print as the verbs do.
func (a *app) scripts(update, verbose bool) replay.Scripts {
	return replay.Scripts{Update: update, Verbose: verbose, Printer: text.ScriptPrinter{},
		Describe: func(layouts, modules bool, warn func(string)) described.Ask {
			return describer(layouts, modules, "", warn)
		}}
}

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
