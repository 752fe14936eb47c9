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
	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/ptrace"
	"example.com/reframe/replay"
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
		Short: "At each exit compare what the interpreter and the native code do",
		Long: `verify stops the process at each exit, rebuilds the frame, and lets the reference
interpreter run from there to the return of the function, over a copy-on-write view of memory. Then
the native code runs to the same return, that thread alone. What the function returned is
compared, and every byte of memory that either wrote. Stack map, layout or code is wrong where they
differ. The IR is that of --ir, or what the process has in it.

Where a layout says in which function an exit resumes it looks further back: a breakpoint at the entry of the function begins a run of
that, its baseline, beside native code. The state at the exit must be one that the baseline had where the exit resumes, in order, and baseline,
native code and what is resumed from the exit must come to the same; where they do not the report says who is
wrong: the stack map or the native code, the bundle, the layout, the optimized IR, or the runtime. If the
function was already running, only what follows the exit is compared; the summary counts such exits. --from-entry does it at all
exits, with --baseline NAME or the function's own IR as the baseline where no layout says it, and
--from-entry=false at none. --entry NAME verifies each activation of functions so, with or without records: any code whose IR there is.

With --with the VM's own interpreter takes the place of the reference interpreter, and no IR is needed: sh -c
runs COMMAND, once for all exits; it is handed the frames of the virtual machine that a layout reads, and speaks
doc/protocol.md. What it returns and what it stored is held against native code; objects that both
allocated may lie elsewhere.

Of each difference it prints the frame with its slots, the first value and address that differ, the last
instructions of both, and a command that finds it again. --keep writes a core of the moment, which is
before the native code ran, called verify-PID-N.core, or verify-PID-N-2.core where that is
there already: none is overwritten; beside it lie the modules, the layouts and a first script for reframe
replay. --html writes pages of the differences into DIR: index.html and for each a picture of the exit as for explain
--html, with what came of both beside each other. --interesting is for llvm-reduce, which makes the module of a difference small (doc/verify.md): the
COMMAND is only tried, and killed when it is known whether there is a difference, or after 10 s (--for). Where interpreter and native code cannot be compared, such as
behind a call that prints, the exit is counted with the reason. doc/verify.md says what is compared.

Differences are written to standard output; with COMMAND, which has that for itself, to standard
error. -o FILE writes them to a file instead, which must not exist yet unless --force is
given, and -o - to standard output. The summary goes to standard error; with --json it is the last
object too. Where --json goes to standard error, nothing else of reframe's does: warnings are objects.
--for ends it after a time, when the exit that is being verified is done.

Exit status: 0 all exits are the same, 1 some could not be compared, 2 none could or it failed,
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
		"skip":    "pass the first `N` exits",
		"steps":   "the native code may run `N` instructions for one exit",
		"timeout": "the native code may run for so long for one exit (`TIME`: 100ms, 5s)",
	})
	f.BoolVar(&o.FromEntry, "from-entry", false, "hold each exit against a run of its function's baseline from the entry on too, and say who is wrong; without it those whose layout names the baseline, where that can be; =false: none")
	f.StringVar(&o.Baseline, "baseline", "", "the baseline is the function `NAME` of the modules, and not what the layout resumes in")
	f.Var(names.IntoAll(&o.EntriesOf), "entry", "verify each activation of function NAME from its entry on, in the place of exits; may be given again")
	f.StringVar(&o.With, "with", "", "the VM's own interpreter in place of the reference interpreter: `COMMAND`, for sh, which speaks doc/protocol.md")
	k.selfFlag(c)
	f.StringVar(&k.memory, "memory", "1G", "how much of the process's memory may be copied (`SIZE`: 64M, 2G)")
	f.IntVar(&o.Tail, "tail", 20, "show the last `N` instructions of both where there is a difference")
	f.StringVar(&o.Keep, "keep", "", "write a core of each exit at which there is a difference into `DIR`, with the modules, the layouts and a script")
	f.StringVar(&k.html, "html", "", "write an index and a page of each difference, with a picture of the exit, into `DIR`")
	f.StringVar(&k.interesting, "interesting", "", "end at the first difference of which the report says `TEXT`, with exit status 0, and with 1 where there is none: llvm-reduce's --test; without =TEXT at any")
	f.Lookup("interesting").NoOptDefVal = anyDifference
	f.BoolVar(&k.all, "all", false, "show every exit that was verified, not only differences")
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
	case o.With != "" && (o.FromEntry || len(o.EntriesOf) > 0 || o.Baseline != ""):
		return usage("--with and --from-entry, --entry or --baseline: one of them; a record at the entry of a function is an exit like others for --with")
	case o.With != "" && !k.untold().Layouts && !slices.ContainsFunc(k.Layouts, vmlayout.IsLayout):
		return usage("--with needs the layout of the virtual machine: --layout FILE.star, or a name such as simple")
	case len(k.Modules) == 0 && o.With == "" && k.mute:
		return usage("verify needs the module that was compiled: --ir FILE.ll; it is what the interpreter runs")
	case len(o.EntriesOf) > 0 && len(k.exits.At) > 0:
		return usage("--entry and --at: one of them; both say at the entry of which functions it stops")
	case len(o.EntriesOf) > 0 && o.FromEntry:
		return usage("--entry and --from-entry: one of them; --entry is about activations, --from-entry about exits")
	case len(o.EntriesOf) > 0 && (len(k.exits.Filter.Records) > 0 || len(k.exits.Filter.Sites) > 0):
		return usage("--entry: no exits are looked at, of which --record and --site say something")
	case o.Baseline != "" && !o.FromEntry && len(o.EntriesOf) == 0:
		return usage("--baseline %s: with --from-entry or --entry only; without them a layout names it", o.Baseline)
	case c.Flags().Changed("html") && k.html == "":
		return usage("--html: the name of the directory is empty")
	case k.html == standard:
		return usage("--html -: a directory; one of that name is ./-")
	case k.interesting != "" && k.html != "":
		return usage("--interesting and --html: one of them; of what is only tried there are no pages")
	case k.interesting != "" && (a.json || k.all):
		return usage("--interesting: nothing is shown, so that --json and --all have no meaning beside it")
	case o.Steps == 0 || o.Steps > 1<<40:
		return usage("--steps %d: 1 to %d", o.Steps, uint64(1)<<40)
	case o.Time <= 0:
		return usage("--timeout %v: a time above 0", o.Time)
	case o.Keep == standard:
		return usage("--keep -: a directory; one of that name is ./-")
	case o.Tail < 1 || o.Tail > maxTail:
		return usage("--tail %d: 1 to %d", o.Tail, maxTail)
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

// nearest suggests functions of the modules with a name similar to one that does not exist.
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

// reproduce returns a command that verifies only the exit of v. Exits of several threads may come in another order.
func (k *verified) reproduce(v *verify.Verified) string {
	words := append([]string{"verify"}, k.again...)
	if k.options.ByLayout && v.Baseline != nil { // compare from the entry, also after --skip
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
			return fmt.Errorf("--html %s: there is an index.html; --force overwrites it", k.html)
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
	if k.interesting != "" && len(k.command) > 0 { // the command was run only for the test of llvm-reduce
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
		if failed := k.book.Finish(verifiedText(sum, &k.watched, len(k.options.EntriesOf) > 0)); err == nil {
			err = failed
		}
	}
	end := ended{k.verdict(sum, err)}
	if a.json {
		w.summary(verifySummary{sum, end.why()})
	}
	if failed := w.close(); failed != nil {
		return k.writeError(ctx, failed) // it caused the other errors
	}
	if w.alone() {
		return end.silent()
	}
	var by interruption
	if err == nil || errors.As(err, &by) || sum.Exits+sum.Skipped > 0 {
		a.printVerified(sum, k)
	}
	return end.error
}

// anyDifference is the value of --interesting without a text.
const anyDifference = "different"

// keep writes the modules, the layouts and a script next to the core of an exit, so that it can be opened on any machine.
func (k *verified) keep(ctx context.Context, v *verify.Verified) (err error) {
	if v.Core == "" {
		return nil
	}
	var modules []string
	for _, fn := range []*ir.Func{v.Exit.Frame.NativeFunction(), v.Exit.Frame.To()} {
		if fn != nil && !slices.Contains(modules, fn.Module.Name) {
			modules = append(modules, fn.Module.Name)
		}
	}
	for _, m := range k.options.Modules { // other modules that the user named
		if !m.Found && !slices.Contains(modules, m.Name) {
			modules = append(modules, m.Name)
		}
	}
	v.Script, err = replay.Keep(ctx, v.Core, modules, k.Layouts)
	return err
}

// started attaches to the process or starts the command. With --interesting the command ends with reframe.
func (k *verified) started(ctx context.Context) (*ptrace.Session, error) {
	if k.interesting != "" && len(k.command) > 0 {
		return ptrace.LaunchWith(ctx, k.command, ptrace.LaunchOptions{Bound: true})
	}
	return k.open(ctx, k.command)
}

// tried is the default of --for with --interesting: a reduced program may never end.
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
		return nothing("there was no " + what)
	case s.Same == 0:
		return nothing("no " + what + " could be verified")
	case s.NotComparable > 0 || s.Overwritten > 0 || s.Unwatched > 0:
		return &status{exitPartial, ""}
	}
	return nil
}
