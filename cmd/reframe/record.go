package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/cli/flags"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/report/text"
	"example.com/reframe/ptrace"
	"example.com/reframe/replay"
)

// recording holds the flags of record.
type recording struct {
	watched
	held    ptrace.RecordOptions // --memory and --compress
	redact  []string             // ranges and names of memory that the core omits
	script  string
	hit     uint64
	limits  deopt.Limits
	timeout time.Duration
	again   []string // the flags that a suggested command for the core repeats
	file    string   // the file to which the core is first written: that of -o, or a temporary one
}

func (a *app) recordCommand() *cobra.Command {
	var k recording
	c := &cobra.Command{
		Use:   "record {PID | CORE | [flags] -- COMMAND [ARG...]} -o FILE",
		Short: "Write a core of one moment of a process",
		Long: `record stops the process, copies it, resumes it, and writes an ELF core that every verb
with --core, gdb, lldb and eu-stack can read. Nothing is written into the process.

By default the core is small. It contains the registers of all threads, their stacks, registered JIT
objects with their data, and the pages to which registers and stacks point, and of a Go program
with DWARF all goroutines with their stacks. With --ir the
reference interpreter also runs from every frame that can be resumed, while the process is
stopped, and the core contains the pages that it reads. Contents of files are not in the core; it
names the files with their build ids. --memory writable also keeps all memory that is not in a
file, like the kernel; --memory all keeps the files too.

A small core, also one that is made from a core (--core), omits the environment block, which
often holds passwords and tokens, unless --environment is given. All other content of the
pages is in the core: check it for secrets before you share it.

--redact leaves out memory, with any --memory: an address range (0x1000-0x2000,
0x1000+64), or all mappings of a name ([heap], [stack], a path or the last part of one).
Values in it are unavailable. Copies in registers and in other memory stay. If no mapping
has the name, or part of the range is not mapped, record fails and writes no core.

With --record, --function, --site, --at, --stop-at or --hit, or if it starts the
process itself, record waits for an exit (see trace), at most for the time of --for, and
records that moment. Until then there are breakpoints in the process. Standard output belongs to
COMMAND; messages of record then go to standard error.

With --core it makes a small core from a large one, such as one that the kernel has written
or verify has kept.

--script writes a first replay script for the core: reframe replay runs it, and it can be
kept as a test. --compress compresses the core with zstd, which debuggers cannot read.

An existing file is overwritten only with --force, an input file never. -o - and
--script - write to standard output; messages of record then go to standard error.

Exit status: 0 OK, 2 error, and no file was written; 130, 143 or 129 after SIGINT,
SIGTERM or SIGHUP.`,
		Example: `  reframe record 41822 -o exit.core
  reframe record -p 41822 -o exit.core --ir loop.ll --layout loop.layout.json --script exit.txtar
  reframe record --ir loop.ll --record 51 --hit 3 -o exit.core -- ./host loop.o
  reframe record -p 41822 -o exit.core.zst --memory writable --compress
  reframe record -p 41822 -o exit.core --redact '[heap]' --redact 0x7ffd1000+256
  reframe record --core verify-1-2.core --ir loop.ll -o exit.core --script exit.txtar`,
		RunE: func(c *cobra.Command, args []string) error {
			args, err := targetOrCommand(c, args)
			if err != nil {
				return err
			}
			o, err := k.read(a, c, args)
			if err != nil {
				return err
			}
			return a.record(c.Context(), &k, o, args)
		},
		ValidArgsFunction: completeCommand,
	}
	k.controlFlags(c)
	k.coreFlags(c)
	k.debuggerFlags(c)
	k.siteFlags(c)
	f := c.Flags()
	f.SetInterspersed(false) // words after the command's name belong to the command
	f.StringVarP(&k.output, "output", "o", "", "write the core to `FILE`, or to standard output (-)")
	forceFlag(c, &k.force)
	flags.Record(f, &k.held, flags.Usage{"memory": "select the memory in the core: `minimal`, writable or all", "compress": "compress the core with zstd"})
	f.StringVar(&k.script, "script", "", "write a first replay script to `FILE`, or to standard output (-)")
	flags.Stop(f, &k.stop, flags.Usage{"stop-at": "wait for an exit that matches the condition `COND` (reframe help conditions)"})
	flags.Hit(f, &k.hit, flags.Usage{"hit": "wait for the `N`-th such exit"})
	k.forFlag(c)
	k.selfFlag(c)
	f.BoolVar(&k.held.Environment, "environment", false, "keep the environment of the process in a minimal core")
	f.StringArrayVar(&k.redact, "redact", nil, "leave out the memory of `RANGE`: START-END, START+SIZE or the name of a mapping, such as [heap] (repeatable)")
	f.IntVar(&k.stack, "stack-bytes", 0, "copy at most `BYTES` of each stack (default 524288, for deep stacks up to 9437184)")
	f.Uint64Var(&k.limits.Steps, "steps", 1e6, "bound the interpreter to `N` instructions for each frame")
	f.DurationVar(&k.timeout, "timeout", time.Second, "bound the time of the interpreter for all frames")
	f.BoolVar(&a.json, "json", false, "print one JSON object (schema "+recordSchema+")")
	_ = c.RegisterFlagCompletionFunc("memory", cobra.FixedCompletions([]string{"minimal", "writable", "all"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// waits reports whether record waits for an exit.
func (k *recording) waits(c *cobra.Command, args []string) bool {
	return len(args) > 0 || slices.ContainsFunc([]string{"record", "function", "site", "at", "stop-at", "hit"}, c.Flags().Changed)
}

// read parses the flags into options, and rejects contradictory ones. The options are nil unless record waits for an exit.
func (k *recording) read(a *app, c *cobra.Command, args []string) (*trace.Options, error) {
	k.every = 1
	k.again = given(c.Flags(), append([]string{"exe", "sysroot", "debug-dir"}, fileFlags...)...)
	waits := k.waits(c, args)
	switch {
	case k.core != "" && waits:
		return nil, usage("--core: cannot wait for an exit in a core")
	case k.still() && waits:
		return nil, usage("%s: cannot wait for an exit while a debugger holds the process", flagName(kindsGiven(c)[0]))
	case k.still() && k.held.Memory != ptrace.Minimal:
		return nil, usage("--memory %s: with %s only minimal is supported", k.held.Memory, flagName(kindsGiven(c)[0]))
	case k.still():
		if err := k.inputs.check(c); err != nil {
			return nil, err
		}
	default:
		if err := k.check(c, args); err != nil {
			return nil, err
		}
	}
	switch {
	case k.output == "":
		return nil, usage("record requires -o FILE, the name of the core")
	case flags.CheckMemory(k.held.Memory) != nil:
		return nil, usage("%v", flags.CheckMemory(k.held.Memory))
	case c.Flags().Changed("for") && !waits:
		return nil, usage("--for requires a flag that waits for an exit: --record, --function, --site, --at, --stop-at or --hit")
	case c.Flags().Changed("for") && k.time <= 0:
		return nil, usage("--for %v: must be above 0", k.time)
	case k.hit == 0:
		return nil, usage("--hit 0: must be above 0")
	case k.timeout <= 0:
		return nil, usage("--timeout %v: must be above 0", k.timeout)
	case c.Flags().Changed("script") && k.script == "":
		return nil, usage("--script requires the name of a file")
	case waits && k.stack != 0:
		return nil, usage("--stack-bytes cannot be combined with waiting for an exit")
	}
	for _, text := range k.redact {
		r, err := ptrace.ParseRedaction(text)
		if err != nil {
			return nil, usage("--redact %v", err)
		}
		k.held.Redact = append(k.held.Redact, r)
	}
	if err := k.checkOutputs(args); err != nil {
		return nil, err
	}
	k.follows = waits
	given, err := k.inputs.options(a)
	if err != nil || !waits {
		return &trace.Options{Options: given}, err
	}
	o := &trace.Options{Options: given, ExitFilter: k.exits.Filter, At: k.exits.At, Full: true, For: k.time, Wait: k.wait || len(args) > 0}
	o.Stop, err = k.condition(c, &given)
	return o, err
}

// checkOutputs rejects output files that cannot be written, or that record must not replace.
func (k *recording) checkOutputs(command []string) error {
	files := []named{{"-o", k.output}, {"--script", k.script}}
	for _, f := range files {
		switch {
		case f.path == "":
			continue
		case f.path == standard && len(command) > 0:
			return usage("%s -: standard output belongs to the command", f.by)
		case f.path == standard:
			continue
		}
		if info, err := os.Stat(filepath.Dir(f.path)); err != nil || !info.IsDir() {
			return fmt.Errorf("%s %s: directory %s not found", f.by, f.path, filepath.Dir(f.path))
		}
		if info, err := os.Stat(f.path); err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("%s %s: the file exists and is not a regular file", f.by, f.path)
		}
	}
	if k.output == standard && k.script != "" {
		return usage("-o - cannot be combined with --script, which names the core: use -o FILE")
	}
	return refuseLoss(k.force, files, k.inputFiles(command))
}

// recorded holds the result of a recording.
type recorded struct {
	*ptrace.RecordedCore
	pause   time.Duration
	stopped bool     // a signal had stopped the process before, so it stays stopped
	exit    string   // the exit that record waited for
	ended   int      // number of interpreter runs that reached their end
	why     []string // reasons of the runs that did not
}

func (a *app) record(ctx context.Context, k *recording, o *trace.Options, command []string) error {
	var r *recorded
	var err error
	k.file = k.output
	if k.output == standard {
		if term.IsTerminal(int(a.stdout.Fd())) {
			return usage("-o -: cannot write a core to a terminal")
		}
		dir, err := os.MkdirTemp("", "reframe-core-") // a core is not written sequentially, so it cannot be written to a pipe
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		k.file = filepath.Join(dir, "core")
	}
	if o.Full {
		r, err = a.recordExit(ctx, k, o, command)
	} else {
		r, err = a.recordNow(ctx, k, o.Options)
	}
	var by interruption
	switch {
	case errors.As(err, &by):
		return &status{by.status(), "interrupted; no core was written"}
	case err != nil:
		return err
	}
	if k.output == standard {
		err = a.copyOut(k.file)
	} else if k.script != "" {
		err = a.writeScript(ctx, k)
	}
	if err != nil {
		return err
	}
	out := a.stdout
	if len(command) > 0 || k.output == standard || k.script == standard {
		out = a.stderr // standard output contains the command's output, or the core
	}
	if a.json {
		return text.WriteJSON(out, r.report(k))
	}
	return a.printRecorded(out, r, k)
}

// recordNow records a process without waiting for an exit.
func (a *app) recordNow(ctx context.Context, k *recording, o deopt.Options) (*recorded, error) {
	minimal := k.held.Memory == ptrace.Minimal
	thread := o.Thread
	o.Thread = 0
	var t *ptrace.Target
	var err error
	g := goroutines{parked: true}
	defer g.close()
	if k.still() {
		if t, err = k.openStill(ctx, k.files); err == nil {
			t.KeepTouched()
			g.touch(t)
		}
	} else {
		p := ptrace.Options{Record: true, StackBytes: k.stack, DebugDirs: k.files.DebugDirs, Hold: !minimal || len(o.Modules) > 0}
		if minimal {
			p.Goroutines = g.layout
		}
		t, err = ptrace.Capture(k.pid, p)
	}
	if err != nil {
		return nil, err
	}
	defer t.Close()
	r := &recorded{stopped: t.Stopped}
	if minimal && len(o.Modules) > 0 {
		view, err := deopt.Frames(t, o)
		if err != nil {
			return nil, err
		}
		r.touch(ctx, view, k)
	}
	r.RecordedCore, err = t.WriteCore(ctx, k.file, k.options(a, thread))
	r.pause = t.Release()
	if lost := t.Lost(); lost != nil && err == nil {
		r.LeftOut = append(r.LeftOut, "memory: "+lost.Error())
	}
	return r, err
}

// touch runs the interpreter, so that the core contains the memory that the interpreter reads.
func (r *recorded) touch(ctx context.Context, view *deopt.View, k *recording) {
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	r.ended, r.why = view.Touch(ctx, k.limits)
}

func (k *recording) options(a *app, thread int) ptrace.RecordOptions {
	o := k.held
	o.Thread, o.Replace, o.Progress = thread, k.force, a.progress(k.output)
	return o
}

// progressAfter is the time after which progress is shown.
const progressAfter = 500 * time.Millisecond

// progress returns a function that shows on a terminal how much of a file is written. It returns nil if there is no terminal.
func (a *app) progress(file string) func(written, of uint64) {
	if !term.IsTerminal(int(a.stderr.Fd())) {
		return nil
	}
	begin, last := time.Now(), time.Duration(0)
	return func(written, of uint64) {
		since := time.Since(begin)
		if since < progressAfter || since < last+progressAfter/5 && written < of {
			return
		}
		last = since
		fmt.Fprintf(a.stderr, "\r%s: %d of %d MiB\x1b[K", text.Printable(filepath.Base(file)), written>>20, of>>20)
		if written >= of {
			fmt.Fprint(a.stderr, "\r\x1b[K")
		}
	}
}

// errRecorded ends the trace after the core is written.
var errRecorded = errors.New("recorded")

// recordExit waits for an exit and records the process at that exit.
func (a *app) recordExit(ctx context.Context, k *recording, o *trace.Options, command []string) (*recorded, error) {
	o.Warn = func(message string) { fmt.Fprintln(text.Fold(a.stderr), "reframe: "+text.PrintableLines(message)) }
	o.Describe = k.describer(o.Warn)
	s, err := k.open(ctx, command)
	if err != nil {
		return nil, err
	}
	r, seen := &recorded{}, uint64(0)
	stop := o.Stop
	o.Stop = nil
	sum, err := trace.Run(ctx, s, *o, func(x *trace.Exited) error {
		if stop != nil && !x.Fulfils(stop) {
			return nil
		}
		if seen++; seen < k.hit {
			return nil
		}
		begin := time.Now()
		t, err := s.Target()
		if err != nil {
			return err
		}
		t.KeepTouched()
		g := goroutines{parked: true}
		g.touch(t)
		if len(o.Modules) > 0 {
			view, err := deopt.Frames(t, deopt.Options{Modules: o.Modules, Layouts: o.Layouts, VMs: o.VMs})
			if err != nil {
				return err
			}
			r.touch(ctx, view, k)
		}
		r.RecordedCore, err = t.WriteCore(ctx, k.file, k.options(a, x.Thread.ID))
		r.pause, r.exit = time.Since(begin), exitTitle(x)
		if err == nil {
			err = errRecorded
		}
		return err
	})
	late := s.Detach()
	switch {
	case errors.Is(err, errRecorded):
		return r, late
	case err == nil && seen > 0:
		err = fmt.Errorf("%s: only %d such exits occurred, but --hit %d was given", text.Ending(sum.End, k.runLimits()), seen, k.hit)
	case err == nil:
		err = fmt.Errorf("%s: no such exit occurred", text.Ending(sum.End, k.runLimits()))
	}
	return nil, err
}

// exitTitle names an exit.
func exitTitle(x *trace.Exited) string {
	if x.Frame == nil {
		return fmt.Sprintf("%s, no record", x.Point.Function)
	}
	title := text.Place(&x.Frame.Frame)
	if r := x.Frame.Record; r != nil {
		title += fmt.Sprintf(", record %d, %s", r.ID, text.Site(r))
	}
	return title
}

// secrets returns a warning about data in the core that may be secret.
func (k *recording) secrets(r *recorded) string {
	memory := map[ptrace.CoreMemory]string{ptrace.Minimal: "parts of the memory", ptrace.Writable: "all writable memory", ptrace.All: "all memory"}[k.held.Memory]
	redacted := ""
	if len(r.Redacted) > 0 {
		redacted = " without what was redacted"
	}
	environment := "its environment"
	switch {
	case r.Environment == ptrace.EnvironmentLeftOut:
		environment = "not its environment"
	case r.Environment == ptrace.EnvironmentUnknown:
		environment = "possibly its environment, whose address is unknown"
	case k.core != "":
		environment = "the part of its environment that the other core contains"
	}
	return fmt.Sprintf("it holds %s of the process%s, and %s: look for secrets before you share it", memory, redacted, environment)
}

// printRecorded prints the result of a recording.
func (a *app) printRecorded(out *os.File, r *recorded, k *recording) error {
	s := a.styleOf(out)
	var b strings.Builder
	core := k.output
	if core == standard {
		core = "on standard output"
	}
	fmt.Fprintf(&b, "%s  %s, %s of memory (%s)\n", s.Bold(text.Printable(core)), text.Count(r.Threads, "thread"), text.Bytes(r.Held), k.held.Memory)
	if r.exit != "" {
		fmt.Fprintf(&b, "  at %s\n", text.Printable(r.exit))
	}
	if r.ended+len(r.why) > 0 {
		fmt.Fprintf(&b, "  with the pages that the interpreter read in %s\n", text.Count(r.ended, "run"))
	}
	for _, why := range r.why {
		fmt.Fprintf(&b, "  %s\n", s.Yellow(text.Printable(why)))
	}
	for _, left := range r.LeftOut {
		fmt.Fprintf(&b, "  left out: %s\n", s.Yellow(text.Printable(left)))
	}
	if len(r.Redacted) > 0 {
		fmt.Fprintf(&b, "  redacted: %s, %d bytes\n", text.Count(len(r.Redacted), "range"), redactedBytes(r.Redacted))
	}
	fmt.Fprintf(&b, "  %s\n", k.secrets(r))
	if _, err := io.WriteString(text.Fold(out), b.String()); err != nil {
		return err
	}
	if !k.still() {
		fmt.Fprintln(text.Fold(a.stderr), text.Paused("it", r.pause, r.stopped))
	}
	if k.output == standard {
		return nil
	}
	next := append([]string{"frames", "--core", k.output}, k.again...)
	if k.script != "" && k.script != standard {
		next = []string{"replay", k.script}
	}
	fmt.Fprintf(text.Fold(a.stderr), "\n%s\n", try(next...))
	return nil
}

// recordSchema names the JSON of record.
const recordSchema = "reframe.record/v1"

// recordReport is the JSON of record.
type recordReport struct {
	Schema   string   `json:"schema"`
	Core     string   `json:"core"`
	Memory   string   `json:"memory"`
	Threads  int      `json:"threads"`
	Bytes    int64    `json:"bytes"`              // size of the file
	Held     uint64   `json:"held"`               // bytes of memory in the file
	PauseUS  *int64   `json:"pause_us,omitempty"` // nil if the target is a core
	Exit     string   `json:"exit,omitempty"`
	Runs     int      `json:"runs"` // interpreter runs that reached their end
	Failed   []string `json:"failed,omitempty"`
	LeftOut  []string `json:"left_out,omitempty"`
	Script   string   `json:"script,omitempty"`
	Compress bool     `json:"compressed"`

	Environment string           `json:"environment"` // kept, left out, unknown
	Redacted    []redactedReport `json:"redacted,omitempty"`
}

// redactedReport describes memory that was left out on request.
type redactedReport struct {
	Start frame.Hex `json:"start"`
	Bytes uint64    `json:"bytes"`
}

// environments holds the text in the JSON for each state of the environment block.
var environments = map[ptrace.CoreEnvironment]string{ptrace.EnvironmentKept: "kept", ptrace.EnvironmentLeftOut: "left out", ptrace.EnvironmentUnknown: "unknown"}

func (r *recorded) report(k *recording) *recordReport {
	out := &recordReport{recordSchema, k.output, string(k.held.Memory), r.Threads, r.Size, r.Held, nil, r.exit, r.ended, r.why, r.LeftOut, k.script, k.held.Compress, environments[r.Environment], nil}
	for _, p := range r.Redacted {
		out.Redacted = append(out.Redacted, redactedReport{frame.HexOf(uint64(p.Start)), uint64(p.End - p.Start)})
	}
	if !k.still() {
		out.PauseUS = new(r.pause.Microseconds())
	}
	return out
}

// redactedBytes returns the total size of the ranges.
func redactedBytes(list []machine.Range) (n uint64) {
	for _, r := range list {
		n += uint64(r.End - r.Start)
	}
	return n
}

// writeScript writes the first script of the core that was recorded.
func (a *app) writeScript(ctx context.Context, k *recording) error {
	runner := a.scripts(false, false)
	first := replay.First{Scripts: &runner, Script: k.script, Core: k.output, Options: k.files, Modules: k.Modules, Layouts: k.Layouts}
	if k.script != standard {
		return first.Write(ctx, k.force)
	}
	text, err := replay.FirstScript(ctx, first)
	if err == nil {
		_, err = a.stdout.WriteString(text)
	}
	return err
}
