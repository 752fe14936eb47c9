// Command reframe inspects a process whose code LLVM compiled just in time, and rebuilds the frames that an interpreter would have had at the same
// point.
//
// It consists of flags, one call into the library, and printing. Data is written to standard output, messages to standard error. Its main type is
// app, one run of the program.
//
// # Security
//
// The user who starts it is trusted. Text from a target or a file is not trusted: it is escaped before it is printed.
package main

import (
	"context"
	_ "embed" // for version.txt
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/report/text"
)

// The exit statuses are a stable interface.
const (
	exitOK       = 0
	exitPartial  = 1 // some value or frame is unavailable
	exitFailed   = 2 // the answer is empty, or the verb failed
	exitDisagree = 3 // interpreter and native code disagree
	exitUsage    = 64
)

func main() {
	withoutCollecting()
	// Use one processor: a second one would be taken from the target's threads, which need processors until they are stopped.
	runtime.GOMAXPROCS(1)
	os.Exit(run(interruptible(), os.Args[1:], os.Stdout, os.Stderr))
}

// status is an error that carries an exit status. Without a message it prints nothing.
type status struct {
	code    int
	message string
}

func (s *status) Error() string { return s.message }

// usage returns an error for a wrong command line.
func usage(format string, args ...any) error {
	return &status{exitUsage, fmt.Sprintf(format, args...)}
}

// flagError returns err, or for an invalid value of a flag an error that describes the values that the flag takes.
func flagError(err error) error {
	takes := map[string]string{"bool": "expected true or false", "int": "expected a whole number", "uint64": "expected a whole number, 0 or more", "duration": "expected a time, such as 5s or 100ms"}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		flag := invalid.GetFlag()
		if flag.Value.Type() == new(names.Flag).Type() {
			return usage("--%s %s: %v", flag.Name, invalid.GetValue(), invalid.Unwrap())
		}
		if wanted := takes[flag.Value.Type()]; wanted != "" {
			return usage("--%s %q: %s", flag.Name, invalid.GetValue(), wanted)
		}
	}
	return err
}

// meant adds the nearest known flag to the error for an unknown one.
func meant(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return err
	}
	var all []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			all = append(all, f.Name)
		}
	})
	name := unknown.GetSpecifiedName()
	if all = names.ByDistance(name, all); len(all) > 0 && names.Distance(name, all[0]) <= min(2, len(name)/2) {
		return usage("%v; did you mean --%s?", err, all[0])
	}
	return err
}

// needs rejects a command line without arguments.
func needs(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage("%s is missing", what)
		}
		return nil
	}
}

// run runs the program without ending its process, and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr *os.File) int {
	app := &app{stdout: stdout, stderr: stderr}
	root := app.root()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	verb, err := root.ExecuteContextC(ctx)
	app.warn()
	if err == nil {
		return exitOK
	}
	code := exitFailed
	var s *status
	if errors.As(err, &s) {
		code = s.code
	} else if !app.started {
		// Every error of cobra before a verb runs is a usage error.
		code = exitUsage
	}
	if message := err.Error(); message != "" {
		fmt.Fprintf(text.Fold(stderr), "reframe: %s\n", text.PrintableLines(message))
	}
	var where *ir.Error
	if errors.As(err, &where) && where.Text != "" {
		fmt.Fprintln(stderr, text.PrintableLines(where.Snippet()))
	}
	if code == exitUsage {
		fmt.Fprintf(stderr, "try: %s --help\n", verb.CommandPath())
	}
	return code
}

// app holds the state that all verbs share.
type app struct {
	stdout, stderr *os.File
	color          string
	json           bool
	started        bool
	modules        []*ir.Module        // the modules of --ir and of the target
	warned         map[ir.Warning]bool // unknown words of the modules that were already reported
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "reframe",
		Short: "Rebuild interpreter frames of code that LLVM compiled just in time",
		Long: `Reframe inspects a process whose code LLVM compiled just in time, from outside. It finds
the stack map record for each program counter, reads every recorded value from registers, stack
and constants, names and types the values by the IR, and resumes from there in a reference
interpreter.`,
		Example: `  reframe demo                                 the main features
  reframe frames 41822 --ir loop.ll            frames of every thread
  reframe resume 41822 --ir loop.ll --layout loop.layout.json
  reframe verify --ir loop.ll -- ./host        compare with native code
  reframe stress --ir loop.ll -- ./host        deoptimize at random exits
  reframe record 41822 --ir loop.ll -o exit.core --script exit.txtar
  reframe replay ./osr/...                     run recorded exits as tests`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			atOnce(c.Name())
			if a.color != "auto" && a.color != "always" && a.color != "never" {
				return usage("--color %s: expected auto, always or never", a.color)
			}
			a.started = true
			return nil
		},
	}
	root.PersistentFlags().StringVar(&a.color, "color", "auto", "`WHEN` to colour the output: auto, always or never; auto obeys NO_COLOR")
	_ = root.RegisterFlagCompletionFunc("color", cobra.FixedCompletions([]string{"auto", "always", "never"}, cobra.ShellCompDirectiveNoFileComp))
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { a.help(c, a.stdout) })
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return flagError(meant(c, err)) })
	root.AddCommand(a.framesCommand(), a.rootsCommand(), a.resumeCommand(), a.runCommand(), a.mapsCommand(), a.lintCommand(), a.explainCommand(), a.demoCommand(), a.debugCommand(), a.traceCommand(), a.verifyCommand(), a.stressCommand(), a.instrumentCommand(), a.recordCommand(), a.replayCommand(), a.protocolCommand(), a.dapCommand(), a.gdbCommand(), a.lldbCommand(), scriptsTopic(), conditionsTopic(), manCommand(), layoutServer())
	return root
}

// archived is "$Format:...$" in a checkout. In an archive, git archive replaces this text (gitattributes(5), export-subst) by the nearest tag with
// the distance from it, if any, the commit, and the commit's time in seconds since 1970.
//
//go:embed version.txt
var archived string

// version returns the version of this build: the tag or the commit that Go recorded from git, or that git wrote into an archive.
func version() string {
	v := archivedVersion(archived)
	if v == "" {
		v = "(unknown)"
		if info, ok := debug.ReadBuildInfo(); ok {
			v = info.Main.Version
		}
	}
	return fmt.Sprintf("%s, %s, %s/%s", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// archivedVersion returns the version in an archive: the nearest tag with the distance from it, or else the commit. For text of a checkout it returns
// "".
func archivedVersion(text string) string {
	fields := strings.Fields(text)
	switch {
	case strings.HasPrefix(text, "$Format:"):
		return ""
	case len(fields) == 3:
		return fields[0]
	case len(fields) == 2:
		return fields[0][:min(12, len(fields[0]))]
	}
	return ""
}
