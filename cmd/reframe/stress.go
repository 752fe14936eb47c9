package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"example.com/reframe/internal/base/newfile"
	"example.com/reframe/internal/check/stress"
	"example.com/reframe/internal/cli/flags"
	"example.com/reframe/internal/report/text"
	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/replay"
)

// stressed holds the flags of stress.
type stressed struct {
	inputs
	exits       flags.Exits
	probability string
	only        []string
	stdin       string
	options     stress.Options
	again       []string // given flags that a second run of stress needs to deoptimize the same exits
	files       []string // given flags that describe the code
	sites       []string // given flags that describe the code or select sites
	command     []string
}

func (a *app) stressCommand() *cobra.Command {
	var k stressed
	o := &k.options
	c := &cobra.Command{
		Use:   "stress [--ir FILE.ll] [flags] -- COMMAND [ARG...]",
		Short: "Run a program with and without random deoptimizations, and compare",
		Long: `stress runs a command twice: unchanged, and under control with forced deoptimizations. In the second
run it selects exits at random. At each it rebuilds the frame, has the reference interpreter run it until
the function returns, and commits the result, as resume --commit does: the native function returns
at once, with the interpreter's result and memory, and native code continues in the caller. Standard
output, standard error and the exit status must be the same in both runs. The IR is that of --ir, or the IR
in the process. stress is for LLVM JITs what -XX:+DeoptimizeALot is for HotSpot.

An exit that cannot be committed, for example because its function prints later, is left to native code
and counted with the reason. An exit is selected by --seed, its thread and its number in the thread:
the same seed selects the same exits.

After a difference the command runs again and again with a part of the exits, until the one exit is
found that causes it. stress shows this exit with its slots, the committed changes, and
commands that reproduce it. --keep writes a core of that moment, stress-PID-THREAD-N.core, and beside it a
script for reframe replay, with the suffix .txtar.

The command reads from /dev/null, or from --stdin FILE; its output is not shown. Each run may
take --time. The command may run many times, each time with all its effects on files.

Exit status: 0 no difference, 1 no difference, but exits may be missing because the program has
overwritten a breakpoint, 2 no exit was committed, or error, 3 difference; 130, 143 or
129 after SIGINT, SIGTERM or SIGHUP.`,
		Example: `  reframe stress --ir loop.ll -- ./host loop.o
  reframe stress --ir loop.ll --probability 10% --seed 7 -- ./host loop.o
  reframe stress --ir loop.ll --layout loop.layout.json --site deoptimize --probability 1 --keep cores -- ./host loop.o
  reframe stress --ir loop.ll --only 1011 -- ./host loop.o`,
		Args: needs("the command to run, after --,"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := k.read(a, c, args); err != nil {
				return err
			}
			return a.stress(c.Context(), &k)
		},
		ValidArgsFunction: completeCommand,
	}
	f := c.Flags()
	f.SetInterspersed(false) // words after the command's name belong to the command
	k.Inputs.Add(f, inputUsage)
	completeInputs(c)
	k.selfFlag(c)
	addExits(c, &k.exits)
	f.StringVar(&k.probability, "probability", "1%", "deoptimize this share of the exits, `P`: 0.01, 1%, 1 for all")
	f.Uint64Var(&o.Seed, "seed", 0, "select the exits by the number `N` (default: a new number each time)")
	f.StringArrayVar(&k.only, "only", nil, "deoptimize only exit `N`, or T:N, exit N of thread T (repeatable)")
	f.StringVar(&k.stdin, "stdin", "", "`FILE` is the standard input of each run, - is that of stress (default /dev/null)")
	f.Uint64Var(&o.Steps, "steps", stress.DefaultSteps, "bound the interpreter to `N` instructions per exit")
	f.DurationVar(&o.Time, "time", stress.DefaultTime, "bound the time of each run (`TIME`: 500ms, 10s, 2h)")
	f.IntVar(&o.Reruns, "reruns", stress.DefaultReruns, "make at most `N` further runs to narrow a difference down")
	f.StringVar(&o.With, "with", "", "run the VM's own interpreter instead of the reference interpreter: the shell command `COMMAND`, which speaks doc/user/protocol.md")
	f.StringVar(&o.Keep, "keep", "", "write a core of the exit that causes a difference, and a script, into `DIR`")
	f.BoolVar(&a.json, "json", false, "print one JSON object (schema "+stress.Schema+")")
	return c
}

// read parses the flags into options, and rejects contradictory ones.
func (k *stressed) read(a *app, c *cobra.Command, args []string) error {
	o := &k.options
	changed := c.Flags().Changed
	switch {
	case changed("with") && strings.TrimSpace(o.With) == "":
		return usage("the command of --with is empty")
	case o.With != "" && !k.undescribed().Layouts && !slices.ContainsFunc(k.Layouts, vmlayout.IsLayout):
		return usage("--with requires the layout of the virtual machine: --layout FILE.star")
	case len(k.Modules) == 0 && k.mute:
		return usage("stress requires the compiled module, which the interpreter runs: --ir FILE.ll")
	case changed("only") && (changed("probability") || changed("seed")):
		return usage("--only cannot be combined with --probability or --seed")
	case o.Steps == 0 || o.Steps > 1<<40:
		return usage("--steps %d: must be from 1 to %d", o.Steps, uint64(1)<<40)
	case o.Time <= 0:
		return usage("--time %v: must be above 0", o.Time)
	case o.Reruns < 1:
		return usage("--reruns %d: must be above 0", o.Reruns)
	case o.Keep == standard:
		return usage("--keep -: expected a directory; use ./- for one of that name")
	case changed("stdin") && k.stdin == "":
		return usage("--stdin requires the name of a file")
	}
	if err := readExits(&k.exits); err != nil {
		return err
	}
	var err error
	if o.Probability, err = stress.ParseProbability(k.probability); err != nil {
		return usage("--probability %v", err)
	}
	for _, text := range k.only {
		e, err := stress.ParseExit(text)
		if err != nil {
			return usage("--only %v", err)
		}
		o.Only = append(o.Only, e)
	}
	if !changed("seed") {
		o.Seed = uint64(rand.Uint32())
	}
	k.follows = true
	if o.Options, err = k.inputs.options(a); err != nil {
		return err
	}
	o.ExitFilter, o.At = k.exits.Filter, k.exits.At
	k.files, k.command = given(c.Flags(), append([]string{"no-self-description"}, fileFlags...)...), args
	k.again = slices.Concat(k.files, given(c.Flags(), "at", "function", "record", "site", "stdin", "steps", "time", "with"))
	k.sites = slices.Concat(k.files, given(c.Flags(), "at", "function", "record", "site", "with"))
	return nil
}

// maxStdin bounds the number of bytes that are read from standard input.
const maxStdin = 1 << 30

// input sets the file from which each run reads standard input. For --stdin -, it copies reframe's own standard input to a temporary file, which
// remove deletes.
func (k *stressed) input() (remove func(), err error) {
	remove = func() {}
	if k.options.Stdin = k.stdin; k.stdin != standard {
		return remove, nil
	}
	f, err := os.CreateTemp("", "reframe-stdin-")
	if err != nil {
		return remove, err
	}
	defer f.Close()
	remove = func() { os.Remove(f.Name()) }
	k.options.Stdin = f.Name()
	n, err := io.Copy(f, io.LimitReader(os.Stdin, maxStdin+1))
	if err == nil && n > maxStdin {
		err = fmt.Errorf("--stdin -: standard input has more than %d MiB: use --stdin FILE", maxStdin>>20)
	}
	return remove, err
}

func (a *app) stress(ctx context.Context, k *stressed) error {
	collecting(400)
	o := &k.options
	if o.Keep != "" {
		if err := os.MkdirAll(o.Keep, 0o777); err != nil {
			return err
		}
	}
	remove, err := k.input()
	defer remove()
	if err != nil {
		return err
	}
	words := newOutputQueue(a.stderr) // a stalled reader of warnings must not stop the process
	o.Warn = func(message string) {
		words.offer(text.Folded(a.stderr, "reframe: "+text.PrintableLines(message)+"\n"))
	}
	o.Describe, o.Errors = k.describer, a.stderr
	clear := func() {}
	if term.IsTerminal(int(a.stderr.Fd())) {
		o.Progress = func(what string) { words.offer(fmt.Sprintf("\r%s\x1b[K", what)) }
		clear = func() { words.offer("\r\x1b[K") }
	}
	r, err := stress.Run(ctx, k.command, *o)
	clear()
	words.leave()
	var by interruption
	switch {
	case errors.As(err, &by):
		return &status{by.status(), "interrupted; the command was killed"}
	case err != nil:
		return err
	}
	if c := r.Culprit; c != nil {
		k.commands(c)
		if c.Core != "" {
			if err := k.script(ctx, a, c); err != nil {
				return err
			}
		}
	}
	if a.json {
		err = text.WriteJSON(a.stdout, r)
	} else {
		err = text.PrintStress(text.Fold(a.stdout), a.style(), r)
	}
	if err != nil {
		return err
	}
	if r.Failed > 0 && !a.json {
		words := slices.Concat([]string{"verify"}, k.sites, []string{"--"}, k.command)
		fmt.Fprintf(text.Fold(a.stderr), "at %s left to native code, the interpreter stopped with an error that native code may not have: the frame may be wrong\n%s\n", text.Count(r.Failed, "exit"), try(words...))
	}
	return k.verdict(r)
}

// commands sets the commands that reproduce the effect of an exit.
func (k *stressed) commands(c *stress.Culprit) {
	if !c.Single || c.Uncounted != "" {
		return
	}
	words := slices.Concat([]string{"stress"}, k.again, []string{"--only", c.Native.String(), "--"}, k.command)
	c.Reproduce = commandLine(words...)
	if len(k.exits.At) > 0 || k.stdin != "" { // verify counts exits differently, and reads its own standard input
		return
	}
	words = append([]string{"verify"}, k.files...)
	if k.options.With != "" {
		words = append(words, "--with", k.options.With)
	}
	words = append(words, "--record", fmt.Sprint(c.Record.ID))
	if c.Hit > 1 {
		words = append(words, "--skip", fmt.Sprint(c.Hit-1))
	}
	c.Verify = commandLine(slices.Concat(words, []string{"--limit", "1", "--"}, k.command)...)
}

// script writes the first script for the core that was kept.
func (k *stressed) script(ctx context.Context, a *app, c *stress.Culprit) error {
	path := c.Core + ".txtar"
	if err := newfile.Free(path); err != nil {
		return err
	}
	c.Script = path
	runner := a.scripts(false, false)
	return replay.First{Scripts: &runner, Script: path, Core: c.Core, Modules: k.Modules, Layouts: k.Layouts}.Write(ctx, false)
}

// verdict returns the exit status for a report.
func (k *stressed) verdict(r *stress.Report) error {
	switch {
	case r.Status == stress.Different:
		return &status{exitDisagree, ""}
	case r.Status == stress.Undecided:
		return &status{exitFailed, r.Why}
	case r.Committed > 0 && r.Overwritten > 0:
		return &status{exitPartial, ""}
	case r.Committed > 0:
		return nil
	case r.Exits == 0:
		return &status{exitFailed, k.withoutModules("no exit occurred")}
	case r.Chosen == 0 && len(r.Only) > 0:
		return &status{exitFailed, fmt.Sprintf("none of the exits of --only was among %s", text.Count(r.Exits, "exit"))}
	case r.Chosen == 0:
		return &status{exitFailed, fmt.Sprintf("none of %s was selected: use a higher --probability, or another --seed", text.Count(r.Exits, "exit"))}
	}
	return &status{exitFailed, k.withoutModules("no selected exit could be committed")}
}
