package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/reframe/internal/base/filekind"
	"example.com/reframe/internal/cli/flags"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/ptrace"
	"example.com/reframe/replay"
)

// replayed holds the flags of replay.
type replayed struct {
	inputs   inputs // for cores: the modules and layouts, and where the cores' files are
	cores    bool
	each     string
	update   bool
	verbose  bool
	timeout  time.Duration
	jobs     int
	run      string
	junit    string
	shard    string
	journal  string
	force    bool
	steps    uint64
	selected *regexp.Regexp
	index, n int // of --shard
	files    ptrace.ModuleFiles
}

func (a *app) replayCommand() *cobra.Command {
	var k replayed
	c := &cobra.Command{
		Use:   "replay SCRIPT|DIR|DIR/...",
		Short: "Run replay scripts as tests, or check many cores",
		Long: `replay runs test scripts that open a core or launch a program and check what is found there:
each named file, each *.txtar in DIR, and with DIR/... those below it too.
reframe help scripts explains their format. A script can run commands and open files
with your rights: read the scripts of others before you run them.

With --cores it opens cores instead, which it recognizes by their content. For each it prints one line:
the recorded sites at which its threads are stopped and, with --ir, the result of the innermost frame
that can be resumed. With --each SCRIPT it runs that script for each core; $CORE is the path of the
core.

Several items run at once. A line is printed for each, in the order of the names; a broken or slow
item does not affect the others. With --journal a killed run can be continued: an
item with a result in the journal is not run again unless its files have changed. --shard 0/4 runs
the first of four parts, so that several machines can share the work. The name of an item in its
folder determines its part.

--junit replaces an existing report, and --update the expected files of scripts; a
journal is only appended to. Any other existing file is overwritten only with --force, an
input file never.

Exit status: 0 all are ok, 1 some failed or are partial, 2 none is ok, or error;
130, 143 or 129 after SIGINT, SIGTERM or SIGHUP, when the finished items are reported.`,
		Example: `  reframe replay osr/exit.txtar
  reframe replay ./osr/...
  reframe replay ./osr/... --run sum_ --update
  reframe replay ./osr/... --junit report.xml
  reframe replay --cores /var/crash/... --ir loop.ll --layout loop.layout.json
  reframe replay --cores /var/crash/... --each check.txtar --journal crash.jsonl
  reframe replay --cores /var/crash/... --json --shard 0/4`,
		Args: needs("a script or a folder"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := k.check(c); err != nil {
				return err
			}
			return a.replay(c.Context(), &k, args)
		},
	}
	k.flags(c, a)
	return c
}

func (k *replayed) flags(c *cobra.Command, a *app) {
	f := c.Flags()
	f.BoolVarP(&k.update, "update", "u", false, "rewrite the expected files in scripts where they differ")
	f.BoolVarP(&k.verbose, "verbose", "v", false, "show the output of scripts, and every exit of a core")
	f.DurationVar(&k.timeout, "timeout", time.Minute, "abandon a script or core after this time")
	f.IntVarP(&k.jobs, "jobs", "j", 0, "run `N` items at once (default: the number of processors)")
	f.StringVar(&k.run, "run", "", "run only items whose path matches the regular expression `RE`")
	f.StringVar(&k.junit, "junit", "", "also write JUnit XML to `FILE`")
	forceFlag(c, &k.force)
	f.StringVar(&k.shard, "shard", "", "run only part `I/N`; I is from 0 to N-1")
	f.StringVar(&k.journal, "journal", "", "keep results in `FILE`, and continue a run from it")
	f.BoolVar(&k.cores, "cores", false, "check cores instead of running scripts")
	f.StringVar(&k.each, "each", "", "with --cores: run this `SCRIPT` for each core, whose path is $CORE")
	of := flags.Usage{
		"exe":     "with --cores: `FILE` is their program, instead of the one that they name",
		"sysroot": "with --cores: search the files that they name only below `DIR`",
	}
	for name, text := range inputUsage {
		of[name] = "with --cores: " + text
	}
	k.inputs.Inputs.Add(f, of)
	flags.Core(f, &k.inputs.files, of)
	f.StringArrayVar(&k.inputs.files.DebugDirs, "debug-dir", nil, "with --cores: search separate debug files by build id below `DIR` (repeatable)")
	f.Uint64Var(&k.steps, "steps", 100_000_000, "with --cores: resume a frame for at most `N` instructions")
	f.BoolVar(&a.json, "json", false, "print one JSON object a line (schema "+replay.Schema+")")
	completeInputs(c)
	_ = c.RegisterFlagCompletionFunc("each", cobra.FixedCompletions([]string{"txtar"}, cobra.ShellCompDirectiveFilterFileExt))
}

// maxJobs bounds --jobs; no machine has that many processors.
const maxJobs = 4096

// check rejects contradictory flags.
func (k *replayed) check(c *cobra.Command) (err error) {
	changed := c.Flags().Changed
	of := func(flags ...string) string {
		i := slices.IndexFunc(flags, changed)
		if i < 0 {
			return ""
		}
		return flags[i]
	}
	switch flag := of("each", "ir", "layout", "exe", "sysroot", "debug-dir", "steps"); {
	case flag != "" && !k.cores:
		return usage("--%s requires --cores", flag)
	case changed("each") && of("ir", "layout", "exe", "sysroot", "debug-dir", "steps") != "":
		return usage("--%s cannot be combined with --each: use the script's core command", of("ir", "layout", "exe", "sysroot", "debug-dir", "steps"))
	case k.update && k.cores:
		return usage("--update cannot be combined with --cores: it changes scripts")
	case k.update && k.journal != "":
		return usage("--update cannot be combined with --journal, which skips finished scripts")
	case changed("junit") && (k.junit == "" || k.junit == standard):
		return usage("--junit %s: must be the name of a file: standard output has the results", k.junit)
	case changed("journal") && (k.journal == "" || k.journal == standard):
		return usage("--journal %s: must be the name of a file: standard output has the results", k.journal)
	case k.timeout <= 0:
		return usage("--timeout %v: must be above 0", k.timeout)
	case changed("jobs") && (k.jobs < 1 || k.jobs > maxJobs):
		return usage("--jobs %d: must be from 1 to %d", k.jobs, maxJobs)
	case changed("steps") && k.steps == 0:
		return usage("--steps 0: must be above 0")
	}
	if k.selected, err = regexp.Compile(k.run); err != nil {
		return usage("--run: %v", err)
	}
	k.index, k.n = 0, 1
	if changed("shard") {
		first, second, ok := strings.Cut(k.shard, "/")
		i, err1 := strconv.Atoi(first)
		n, err2 := strconv.Atoi(second)
		if !ok || err1 != nil || err2 != nil || n < 1 || i < 0 || i >= n {
			return usage("--shard %s: expected I/N, with I from 0 to N-1", k.shard)
		}
		k.index, k.n = i, n
	}
	return nil
}

// job returns the function that processes each item.
func (a *app) job(k *replayed) (replay.Job, error) {
	if k.cores && k.each == "" {
		o, err := k.inputs.options(a)
		if err != nil {
			return nil, err
		}
		c := &replay.Cores{Core: k.inputs.files, Inputs: o}
		c.Core.Files, c.Core.Objects = &k.files, objectMemory
		c.Limits.Steps, c.Limits.Memory = k.steps, resumeMemory
		return c.Look, nil
	}
	s := a.scripts(k.update, k.verbose)
	s.Files = &k.files
	if k.each != "" {
		if _, err := os.Stat(k.each); err != nil {
			return nil, err
		}
		return replay.EachCore(s, k.each), nil
	}
	return func(ctx context.Context, i replay.Item) replay.Result {
		if is, err := replay.IsCore(i.Path); i.Named && err == nil && is {
			return replay.Result{Kind: i.Kind, Path: i.Path, Outcome: replay.Failed, Message: "expected a script, got a core; --cores reads cores"}
		}
		// For filekind, a script that begins with [linux] looks like JSON.
		if kind, ok := filekind.OfFile(i.Path); i.Named && ok && kind.What != "JSON" && kind.What != "a replay script" {
			return replay.Result{Kind: i.Kind, Path: i.Path, Outcome: replay.Failed, Message: kind.Instead("a script")}
		}
		return s.Run(ctx, i.Path)
	}, nil
}

// Limits of the memory that all cores share, in bytes for one core: for its registered objects, and for the resumed program.
const (
	objectMemory = 512 << 20
	resumeMemory = 128 << 20
)

// items lists the scripts or cores to process.
func (k *replayed) items(args []string) ([]replay.Item, error) {
	kind, what := replay.Script, "script ("+replay.ScriptSuffix+")"
	if k.cores {
		kind, what = replay.Core, "file"
	}
	items := replay.Find(kind, args)
	if len(items) == 0 {
		return nil, fmt.Errorf("no %s found in %s", what, strings.Join(args, ", "))
	}
	items = slices.DeleteFunc(items, func(i replay.Item) bool { return !k.selected.MatchString(i.Path) })
	if len(items) == 0 {
		return nil, fmt.Errorf("--run %s: no path matches", k.run)
	}
	return replay.Shard(items, k.index, k.n), nil
}

func (a *app) replay(ctx context.Context, k *replayed, args []string) (err error) {
	defer k.files.Close()
	job, err := a.job(k)
	if err != nil {
		return err
	}
	items, err := k.items(args)
	if err != nil {
		return err
	}
	// Use all processors and collect garbage: a run takes long, and no target is stopped.
	collecting(100)
	runtime.SetDefaultGOMAXPROCS()
	if err := k.checkOutputs(items); err != nil {
		return err
	}
	w := newReplayWriter(a, k, items)
	r := &replay.Run{Items: items, Job: job, Workers: k.jobs, Timeout: k.timeout, Report: w.result, Ended: w.ended}
	if k.journal != "" {
		belongs, err := k.belongs(args)
		if err != nil {
			return err
		}
		if r.Journal, err = replay.OpenJournal(k.journal, belongs); err != nil {
			return err
		}
		defer r.Journal.Close()
	}
	if k.junit != "" {
		if w.junit, err = replay.CreateJUnit(k.junit, k.force); errors.Is(err, os.ErrExist) {
			return fmt.Errorf("--junit %s: the file exists and is not a report; --force overwrites it", k.junit)
		} else if err != nil {
			return err
		}
	}
	sum, err := r.Do(ctx)
	if late := w.close(sum); err == nil {
		err = late
	}
	var by interruption
	switch {
	case errors.As(err, &by):
		return &status{by.status(), ""}
	case err != nil:
		return err
	case sum.Items > 0 && sum.PassedOver == sum.Items && k.n == 1:
		return fmt.Errorf("no core found in %s", strings.Join(args, ", "))
	case sum.Failed > 0 && sum.OK+sum.Partial == 0:
		return &status{exitFailed, ""} // each failure was printed
	case sum.Failed+sum.Partial > 0:
		return &status{exitPartial, ""}
	}
	return nil
}

// checkOutputs rejects output files that are also inputs. The journal and the report may be in the folder of the cores, because replay does not
// replace other files with them.
func (k *replayed) checkOutputs(items []replay.Item) error {
	inputs := append(k.inputs.inputFiles(nil), named{"--each", k.each})
	if k.junit != "" && !replay.IsJUnit(k.junit) {
		for _, i := range items {
			inputs = append(inputs, named{"replay", i.Path})
		}
	}
	return refuseLoss(true, []named{{"--journal", k.journal}, {"--junit", k.junit}}, inputs)
}

// belongs lists all inputs that determine the results. A journal is valid only for the same inputs.
func (k *replayed) belongs(args []string) ([]string, error) {
	kind := "scripts"
	if k.cores {
		kind = "--cores"
	}
	out := []string{"reframe " + version(), kind, "--timeout " + k.timeout.String()}
	if slices.ContainsFunc(args, func(arg string) bool { return !filepath.IsAbs(arg) }) { // a relative path names another file in another folder
		dir, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		out = append(out, "the working directory "+dir)
	}
	if k.verbose {
		out = append(out, "--verbose")
	}
	if k.cores && k.each == "" {
		out = append(out, fmt.Sprintf("--steps %d", k.steps))
	}
	if k.inputs.files.Sysroot != "" {
		out = append(out, "--sysroot "+k.inputs.files.Sysroot)
	}
	for _, dir := range k.inputs.files.DebugDirs {
		out = append(out, "--debug-dir "+dir)
	}
	content := func(flag string, paths ...string) error {
		for _, path := range paths {
			if vmlayout.IsBuiltin(path) {
				out = append(out, fmt.Sprintf("--%s %s", flag, path))
				continue
			}
			sum, err := contentSum(path)
			if err != nil {
				return err
			}
			out = append(out, fmt.Sprintf("--%s %s (SHA-256 %x)", flag, path, sum))
		}
		return nil
	}
	files, err := ir.Files(k.inputs.Modules)
	for _, f := range files {
		err = errors.Join(err, content("ir", f.Path))
	}
	err = errors.Join(err, content("layout", k.inputs.Layouts...))
	if k.inputs.files.Exe != "" {
		err = errors.Join(err, content("exe", k.inputs.files.Exe))
	}
	if k.each != "" {
		err = errors.Join(err, content("each", k.each))
	}
	return out, err
}

func contentSum(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return h.Sum(nil), err
}
