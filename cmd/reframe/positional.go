package main

import (
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"example.com/reframe/replay"
)

// positionalHelp is the help text of every verb whose target can be given without a flag.
const positionalHelp = `The target can be given without a flag: a number is a process (-p), anything else the file of a
core (--core).`

// setTarget sets -p or --core from a target that is named without a flag.
func setTarget(c *cobra.Command, arg string) error {
	for _, flag := range kindsGiven(c) {
		return usage("%q and --%s cannot be combined: both select the target", arg, flag)
	}
	if isNumber(arg) {
		if err := c.Flags().Set("pid", arg); err != nil {
			return usage("%s: not a valid process id", arg)
		}
		return nil
	}
	if _, err := os.Stat(arg); errors.Is(err, os.ErrNotExist) {
		return usage("%q is neither a process id nor a file", arg)
	}
	return c.Flags().Set("core", arg)
}

func isNumber(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// onlyTarget sets the target of a verb that takes no other argument.
func onlyTarget(c *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return nil
	case 1:
		return setTarget(c, args[0])
	}
	return usage("expected one target, got %s and %s", args[0], args[1])
}

// errHelp ends a verb that has printed its help.
var errHelp = &status{code: exitOK}

// targetOrCommand sets the target of a verb that can also start a command, which begins at the first argument. A number or a core is a target, which
// flags may follow, and not a command. It returns the words of the command.
func targetOrCommand(c *cobra.Command, args []string) ([]string, error) {
	if len(args) == 0 || c.ArgsLenAtDash() >= 0 || len(kindsGiven(c)) > 0 {
		return args, nil
	}
	if !isNumber(args[0]) {
		if is, err := replay.IsCore(args[0]); err != nil || !is {
			return args, nil
		}
	}
	if err := setTarget(c, args[0]); err != nil {
		return nil, err
	}
	if err := c.ParseFlags(args[1:]); err != nil {
		return nil, usage("%v", flagError(meant(c, err)))
	}
	if help, _ := c.Flags().GetBool("help"); help {
		return nil, errors.Join(c.Help(), errHelp)
	}
	return c.Flags().Args(), c.Root().PersistentPreRunE(c, nil) // its first call preceded the parsing of the later flags
}

// completeTarget completes a target that is given without a flag: a process, or a file.
func completeTarget(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 || len(kindsGiven(c)) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	pids, _ := completePID(c, args, word)
	return pids, cobra.ShellCompDirectiveKeepOrder
}
