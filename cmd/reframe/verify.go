package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/check/verify"
	"example.com/reframe/internal/cli/flags"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/report/html"
	"example.com/reframe/internal/report/text"
	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/ptrace"
)

// verified holds the flags of verify.
type verified struct {
	watched
	memory      string
	all         bool
	interesting string // the text that the report of a difference must contain (--interesting), or ""
	options     verify.Options
	html        string // the directory of pages, or ""
	book        *html.Book
	again       []string // the flags of a command that reproduces a difference
	command     []string
}

func (a *app) verifyCommand() *cobra.Command {
	var k verified
	o := &k.options
	c := &cobra.Command{
		Use:   "verify {PID | [flags] -- COMMAND [ARG...]} [--ir FILE.ll | --with COMMAND]",
		Short: "Compare the interpreter with native code at each exit",
		Long: `verify stops the process at each exit, rebuilds the frame, and has the reference interpreter run it until the
function returns, over a copy-on-write view of memory. Then the native code of that thread runs to the same
return. verify compares the result, and every byte of memory that either side wrote. A difference means
that the stack map, the layout or the code is wrong. The IR is that of --ir, or the IR in the process.

If a layout names the function in which an exit resumes, verify also compares from the entry on. A
breakpoint at the entry of the function starts a run of its baseline, the function that resumes, beside native
code. The state at the exit must be one that the baseline had where the exit resumes, in order. Baseline,
native code and the resumed exit must have the same result. If not, the report names the wrong part: the
stack map or the native code, the bundle, the layout, the optimized IR, or the runtime. If the function was
already running, only what follows the exit is compared, and the summary counts such exits. --from-entry
compares all exits in this way: the baseline is --baseline NAME, or the function's own IR if no layout names
one. --from-entry=false turns this off. --entry NAME verifies each activation of a function in this way, with or without
records: all code with IR can be verified.

With --with the VM's own interpreter replaces the reference interpreter, and no IR is needed. sh -c starts
COMMAND once for all exits. It receives the frames of the virtual machine that a layout describes, and speaks
doc/user/protocol.md. Its result and its stores are compared with native code; objects that both
sides allocated may have different addresses. With --from-entry it also runs from a record at the start of a
method to each later exit of the activation, and the report names the operand, position, field or store that
is wrong. Equal differences are reported once, with a count.

For each difference verify prints the frame with its slots, the first value and address that differ, the last
instructions of both sides, and a command that reproduces it. --keep writes a core of the moment
before the native code ran, called verify-PID-N.core, or verify-PID-N-2.core if that exists: no
core is overwritten. Beside it are the modules, the layouts and a first script for reframe
replay. --html writes pages into DIR: index.html, and for each difference a picture of the exit as explain
--html draws it, with the results of both sides. --interesting is a test for llvm-reduce, which reduces the module
of a difference (doc/user/verify.md): the COMMAND is killed when the result is known, or after 10 s (--for). If
interpreter and native code cannot be compared, for example after a call that prints, the exit is counted with
the reason. doc/user/verify.md describes what is compared.

Differences are written to standard output or, with COMMAND, which uses that itself, to standard
error. -o FILE writes them to a new file, or to an existing one with --force; -o - is standard
output. The summary goes to standard error; with --json it is also the last object. If --json goes to
standard error, warnings are objects too, and nothing else is written there. --for ends the
verification after a time, when the present exit is done.

Exit status: 0 all exits are the same, 1 some could not be compared, 2 none could be compared, or error,
3 interpreter and native code disagree; 130, 143 or 129 after SIGINT, SIGTERM or SIGHUP.`,
		Example: `  reframe verify 41822 --ir loop.ll --layout loop.layout.json
  reframe verify --ir loop.ll --every 100 -- lli -jit-kind=mcjit loop.ll
  reframe verify --ir loop.ll --site statepoint --limit 1000 --keep cores -- ./host loop.o
  reframe verify --from-entry --ir loop.ll -- ./host loop.o
  reframe verify --entry sum_opt --baseline sum --ir loop.ll -- ./host loop.o
  reframe verify --ir loop.ll --record 51 --skip 16 --limit 1 -- ./host loop.o
  reframe verify --ir loop.ll --html pages -- ./host loop.o
  reframe verify --layout simple --with './vm --serve program.vm' -- ./vm program.vm`,
		RunE: func(c *cobra.Command, args []string) error {
			args, err := targetOrCommand(c, args)
			if err == nil {
				err = k.read(a, c, args)
			}
			if err != nil {
				return err
			}
			return a.verify(c.Context(), &k)
		},
		ValidArgsFunction: completeCommand,
	}
	k.addFlags(c)
	f := c.Flags()
	o.Steps, o.Time = 1e6, 10*time.Second
	flags.Verify(f, o, flags.Usage{
		"skip":    "skip the first `N` exits",
		"steps":   "bound the native code to `N` instructions per exit",
		"timeout": "bound the time of the native code per exit (`TIME`: 100ms, 5s)",
	})
	f.BoolVar(&o.FromEntry, "from-entry", false, "also compare each exit with a run of its function's baseline from the entry, and name the wrong part; the default is exits whose layout names the baseline; =false for none")
	f.StringVar(&o.Baseline, "baseline", "", "use function `NAME` of the modules as the baseline, instead of the layout's")
	f.Var(names.IntoAll(&o.EntriesOf), "entry", "verify each activation of function NAME from its entry, instead of exits (repeatable)")
	f.StringVar(&o.With, "with", "", "run the VM's own interpreter instead of the reference interpreter: the shell command `COMMAND`, which speaks doc/user/protocol.md")
	k.selfFlag(c)
	f.StringVar(&k.memory, "memory", "1G", "bound the copied memory of the process (`SIZE`: 64M, 2G)")
	f.IntVar(&o.Tail, "tail", 20, "show the last `N` instructions of both sides at a difference")
	f.StringVar(&o.Keep, "keep", "", "write a core of each exit with a difference into `DIR`, with the modules, the layouts and a script")
	f.StringVar(&k.html, "html", "", "write an index, and a page for each difference with a picture of the exit, into `DIR`")
	f.StringVar(&k.interesting, "interesting", "", "act as llvm-reduce's --test: exit with status 0 at the first difference whose report contains `TEXT`, or with 1 without one; without =TEXT at any difference")
	f.Lookup("interesting").NoOptDefVal = anyDifference
	f.BoolVar(&k.all, "all", false, "show every verified exit, not only differences")
	f.BoolVar(&a.json, "json", false, "print one JSON object a line (schema "+verify.Schema+")")
	return c
}

// maxTail bounds --tail.
const maxTail = 1 << 16

// read parses the flags into options, and rejects contradictory ones.
func (k *verified) read(a *app, c *cobra.Command, args []string) error {
	if err := k.check(c, args); err != nil {
		return err
	}
	o := &k.options
	switch {
	case c.Flags().Changed("with") && strings.TrimSpace(o.With) == "":
		return usage("the command of --with is empty")
	case o.With != "" && (len(o.EntriesOf) > 0 || o.Baseline != ""):
		return usage("--with cannot be combined with --entry or --baseline: the VM's interpreter starts at exits")
	case o.With != "" && !k.undescribed().Layouts && !slices.ContainsFunc(k.Layouts, vmlayout.IsLayout):
		return usage("--with requires the layout of the virtual machine: --layout FILE.star, or a builtin name such as simple")
	case len(k.Modules) == 0 && o.With == "" && k.mute:
		return usage("verify requires the compiled module, which the interpreter runs: --ir FILE.ll")
	case len(o.EntriesOf) > 0 && len(k.exits.At) > 0:
		return usage("--entry and --at cannot be combined: both select functions to stop at")
	case len(o.EntriesOf) > 0 && o.FromEntry:
		return usage("--entry and --from-entry cannot be combined: --entry verifies activations, --from-entry exits")
	case len(o.EntriesOf) > 0 && (len(k.exits.Filter.Records) > 0 || len(k.exits.Filter.Sites) > 0):
		return usage("--entry cannot be combined with --record or --site, which select exits")
	case o.Baseline != "" && !o.FromEntry && len(o.EntriesOf) == 0:
		return usage("--baseline %s requires --from-entry or --entry; without them the layout names the baseline", o.Baseline)
	case c.Flags().Changed("html") && k.html == "":
		return usage("--html requires the name of a directory")
	case k.html == standard:
		return usage("--html -: expected a directory; use ./- for one of that name")
	case k.interesting != "" && k.html != "":
		return usage("--interesting and --html cannot be combined")
	case k.interesting != "" && (a.json || k.all):
		return usage("--interesting cannot be combined with --json or --all: it shows nothing")
	case o.Steps == 0 || o.Steps > 1<<40:
		return usage("--steps %d: must be from 1 to %d", o.Steps, uint64(1)<<40)
	case o.Time <= 0:
		return usage("--timeout %v: must be above 0", o.Time)
	case o.Keep == standard:
		return usage("--keep -: expected a directory; use ./- for one of that name")
	case o.Tail < 1 || o.Tail > maxTail:
		return usage("--tail %d: must be from 1 to %d", o.Tail, maxTail)
	}
	o.ByLayout = !c.Flags().Changed("from-entry") && o.With == "" && len(o.EntriesOf) == 0
	var err error
	if o.Memory, err = parseSize(k.memory); err != nil {
		return usage("--memory %v", err)
	}
	k.follows = true
	if o.Options, err = k.inputs.options(a); err != nil {
		return err
	}
	if name := o.Baseline; name != "" && !slices.ContainsFunc(o.Modules, func(m *ir.Module) bool { f := m.Func(name); return f != nil && !f.Declared() }) {
		return usage("--baseline %s: no module defines @%s%s", name, name, nearest(name, o.Modules))
	}
	o.ExitFilter, o.At, o.Every, o.Limit, o.For, o.Wait = k.exits.Filter, k.exits.At, k.every, k.limit, k.time, k.wait || len(args) > 0
	if k.interesting != "" && o.For == 0 {
		o.For = tried
	}
	k.again = slices.Concat(given(c.Flags(), "pid", "thread"), given(c.Flags(), fileFlags...), given(c.Flags(), "at", "baseline", "entry", "from-entry", "function", "memory", "no-self-description", "site", "steps", "tail", "timeout", "with"))
	k.command = args
	return nil
}

// nearest suggests functions of the modules whose names are similar to one that does not exist.
func nearest(name string, modules []*ir.Module) string {
	near := names.NewNearest(name)
	for _, m := range modules {
		for _, f := range m.Funcs {
			if !f.Declared() {
				near.Add(f.Name)
			}
		}
	}
	return near.String()
}

// reproduce returns a command that verifies only the exit of v. If exits belong to several threads, their order may differ.
func (k *verified) reproduce(v *verify.Verified) string {
	words := append([]string{"verify"}, k.again...)
	if k.options.ByLayout && v.Baseline != nil { // the second comparison must also start at the entry
		words = append(words, "--from-entry")
	}
	skip := v.Hit - 1
	if len(k.exits.At) > 0 || v.Entry != "" {
		skip = v.Number - 1
	} else {
		words = append(words, "--record", fmt.Sprint(v.Exit.Frame.Record.ID))
	}
	if skip > 0 {
		words = append(words, "--skip", fmt.Sprint(skip))
	}
	limit := "1"
	if v.Again != nil {
		limit = "2" // the next hit of the record shows the difference
	}
	words = append(words, "--limit", limit)
	if len(k.command) > 0 {
		words = append(append(words, "--"), k.command...)
	}
	return commandLine(words...)
}

func (a *app) verify(ctx context.Context, k *verified) (err error) {
	collecting(400)
	out, closed, err := k.created(ctx, a, k.command)
	if err != nil {
		return err
	}
	defer func() { err = closed(err) }()
	if k.options.Keep != "" {
		if err := os.MkdirAll(k.options.Keep, 0o777); err != nil {
			return err
		}
	}
	if k.html != "" {
		k.options.Picture = true
		if k.book, err = html.NewBook(k.html, k.force); errors.Is(err, os.ErrExist) {
			return fmt.Errorf("--html %s: index.html exists; --force overwrites it", k.html)
		} else if err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := newVerifyWriter(ctx, a, k, out, cancel)
	k.options.Warn = func(text string) {
		w.clear()
		w.warn(text)
	}
	k.options.Errors = a.stderr
	k.options.Describe = k.describer(k.options.Warn)
	s, err := k.started(ctx)
	if err != nil {
		return err
	}
	w.holds(ctx, s.LetRun)
	sum, err := verify.Run(ctx, s, k.options, w.verified)
	if k.interesting != "" && len(k.command) > 0 { // the command is run only as a test for llvm-reduce
		if late := s.Kill(sum.End.Kind == trace.EndExited || sum.End.Kind == trace.EndKilled); err == nil {
			err = late
		}
	} else if late := s.Detach(); err == nil {
		err = late
	}
	w.clear()
	if k.interesting != "" {
		return interesting(sum, err)
	}
	if k.book != nil {
		if failed := k.book.Finish(text.VerifySummary(sum, k.runLimits(), len(k.options.EntriesOf) > 0)); err == nil {
			err = failed
		}
	}
	end := ended{k.verdict(sum, err)}
	if a.json {
		w.summary(verifySummary{sum, end.why()})
	}
	if failed := w.close(); failed != nil {
		return k.writeError(ctx, failed) // the failed write caused the other errors
	}
	if w.alone() {
		return end.silent()
	}
	var by interruption
	if err == nil || errors.As(err, &by) || sum.Exits+sum.Skipped > 0 {
		fmt.Fprint(text.Fold(a.stderr), text.VerifySummary(sum, k.runLimits(), len(k.options.EntriesOf) > 0))
	}
	return end.error
}

// anyDifference is the value of --interesting if the flag has no text.
const anyDifference = "different"

// keep writes the modules, the layouts and a script next to the core of an exit, so that the core can be examined on any machine.
func (k *verified) keep(ctx context.Context, a *app, v *verify.Verified) (err error) {
	if v.Core == "" {
		return nil
	}
	var modules []string
	for _, fn := range []*ir.Func{v.Exit.Frame.NativeFunction(), v.Exit.Frame.To()} {
		if fn != nil && !slices.Contains(modules, fn.Module.Name) {
			modules = append(modules, fn.Module.Name)
		}
	}
	for _, m := range k.options.Modules { // other modules from the command line
		if !m.Found && !slices.Contains(modules, m.Name) {
			modules = append(modules, m.Name)
		}
	}
	runner := a.scripts(false, false)
	v.Script, err = runner.Keep(ctx, v.Core, modules, k.Layouts)
	return err
}

// started attaches to the process or starts the command. With --interesting the command is killed when reframe ends.
func (k *verified) started(ctx context.Context) (*ptrace.Session, error) {
	if k.interesting != "" && len(k.command) > 0 {
		return ptrace.LaunchWith(ctx, k.command, ptrace.LaunchOptions{Bound: true})
	}
	return k.open(ctx, k.command)
}

// tried is the default of --for with --interesting, because a reduced program may never end.
const tried = 10 * time.Second

// errInteresting ends a verification at the first difference.
var errInteresting = errors.New("there is a difference")

// interesting returns the exit status that llvm-reduce expects of a test: 0 for a module that shows the difference.
func interesting(s *verify.Summary, err error) error {
	var by interruption
	switch {
	case errors.Is(err, errInteresting):
		return nil
	case errors.As(err, &by):
		return &status{by.status(), ""}
	case err != nil:
		return err
	}
	return &status{exitPartial, fmt.Sprintf("not interesting: %d same, %d not comparable, none different", s.Same, s.NotComparable)}
}

// verifySummary is the last object of --json.
type verifySummary struct {
	*verify.Summary
	Error string `json:"error,omitempty"`
}

// verdict returns the exit status of a verification that ended with err.
func (k *verified) verdict(s *verify.Summary, err error) error {
	what := "exit"
	if len(k.options.EntriesOf) > 0 {
		what = "entry"
	}
	nothing := func(why string) error {
		if k.options.With == "" {
			why = k.withoutModules(why)
		}
		return &status{exitFailed, why}
	}
	var by interruption
	switch {
	case errors.As(err, &by):
		return &status{by.status(), ""}
	case s.Different > 0 && err != nil:
		return &status{exitDisagree, err.Error()}
	case s.Different > 0:
		return &status{exitDisagree, ""}
	case err != nil:
		return err
	case s.Exits == 0 && s.Skipped > 0:
		return &status{exitFailed, "no " + what + " was verified: all were skipped"}
	case s.Exits == 0:
		return nothing("no " + what + " occurred")
	case s.Same == 0:
		return nothing("no " + what + " could be verified")
	case s.NotComparable > 0 || s.Overwritten > 0 || s.Unwatched > 0:
		return &status{exitPartial, ""}
	}
	return nil
}
