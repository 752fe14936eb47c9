package replay

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/vm/described"
	"example.com/reframe/ptrace"
)

// Scripts runs scripts. A script is a txtar archive whose comment holds commands, one per line, in the syntax of testscript
// (github.com/rogpeppe/go-internal/testscript). The commands are those of testscript and of [Commands].
type Scripts struct {
	Update  bool     // rewrite FILE of `cmp stdout FILE` if it is in the archive and differs
	Verbose bool     // also store the log of scripts that pass in results
	Env     []string // additional variables, "NAME=value"
	Printer Printer
	Files   *ptrace.ModuleFiles // files that cores share; nil if every core opens its own

	// Describe returns the function for [trace.Options].Describe. Its arguments say whether layouts and modules are wanted: a script wants those that
	// it does not give. If Describe is nil, descriptions in targets are ignored.
	Describe func(layouts, modules bool, warn func(string)) described.Ask
}

// maxScript bounds the size of a script with all of its files, in bytes.
const maxScript = 64 << 20

// Run runs one script. The files of the archive are in $WORK, a new folder that is deleted afterwards; $SCRIPTDIR is the folder of the script itself.
// Several scripts can run at once. When ctx is done, the script fails. On Linux, the programs that it started are then killed.
func (s *Scripts) Run(ctx context.Context, path string) Result {
	out := Result{Kind: Script, Path: path, Outcome: Failed}
	before, comment, err := readScript(path)
	if err != nil {
		out.Message = err.Error()
		return out
	}
	r := &run{scripts: s, ctx: ctx, comment: string(comment)}
	if r.dir, err = filepath.Abs(filepath.Dir(path)); err != nil {
		out.Message = fmt.Sprintf("%s: %v", path, err)
		return out
	}
	parseFlags()
	t := &reporter{verbose: s.Verbose}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				t.failed, t.reason = true, fmt.Sprintf("reframe is at fault: panic: %v\n%s", p, debug.Stack())
			}
		}()
		testscript.RunT(t, testscript.Params{Files: []string{path}, Cmds: r.commands(), UpdateScripts: s.Update, Setup: r.setup, Deadline: deadline(ctx)})
	}()
	if !r.await(done) {
		out.Message = path + ": it does not end"
		return out // the script was abandoned, and still uses its resources
	}
	r.clear()
	switch {
	case !t.failed && ctx.Err() != nil: // programs of the script may still run
		out.Message, out.Log = path+": it did not end in time", t.log.String()
	case t.failed:
		out.Message, out.Log = r.place(t, path), t.log.String()
	case t.skipped:
		out.Outcome, out.Message = Skipped, t.reason
	default:
		out.Outcome = OK
	}
	if now, err := os.ReadFile(path); s.Update && out.Outcome == OK && err == nil && !bytes.Equal(now, before) {
		out.Message = "updated"
		again := *s
		again.Update = false
		if r := again.Run(ctx, path); r.Outcome == Failed { // for example because the archive cannot hold the file unchanged, or the output varies
			out = r
			out.Message += ", after it was updated"
		}
	}
	if s.Verbose {
		out.Log = t.log.String()
	}
	return out
}

// await waits until a script has ended. After its timeout, await kills the processes of the script, and abandons a script that has not ended 1.5
// seconds later.
func (r *run) await(done chan struct{}) (ended bool) {
	select {
	case <-done:
		return true
	case <-r.ctx.Done():
	}
	for range 60 {
		r.kill()
		select {
		case <-done:
			return true
		case <-time.After(25 * time.Millisecond):
		}
	}
	return false
}

// clear kills the processes that a finished script has left. It repeats this until none is found, because a process may have started another just
// before it was killed.
func (r *run) clear() {
	for range 200 {
		if !r.kill() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// deadline returns the deadline to pass to testscript, which kills the running command after nine tenths of the remaining time, or 200 ms before its
// end. With the returned deadline, it does so when ctx ends. On systems on which the processes of a script cannot be found, only testscript kills
// them.
func deadline(ctx context.Context) time.Time {
	at, bounded := ctx.Deadline()
	if !bounded {
		return time.Time{}
	}
	left := time.Until(at)
	return at.Add(max(left/9, 200*time.Millisecond))
}

// parseFlags parses the flags of package testing, which the condition [short] reads.
var parseFlags = sync.OnceFunc(func() {
	if flag.Lookup("test.short") == nil {
		testing.Init()
	}
	if !flag.Parsed() {
		_ = flag.CommandLine.Parse(nil)
	}
})

// readScript reads a script and returns its text and its commands. It rejects a script whose file names lead out of its folder.
func readScript(path string) (text, comment []byte, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxScript {
		return nil, nil, fmt.Errorf("%s: a script must be a regular file of at most %d MiB", path, maxScript>>20)
	}
	text, err = os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	a := txtar.Parse(text)
	seen := map[string]bool{}
	for _, f := range a.Files {
		why := ""
		switch {
		case strings.Contains(f.Name, "$"):
			why = "the name contains a variable"
		case !filepath.IsLocal(f.Name):
			why = "the name is outside of the script's own folder"
		case seen[filepath.Clean(f.Name)]:
			why = "an earlier file has the same name"
		}
		if why != "" {
			return nil, nil, fmt.Errorf("%s:%d: the file %q: %s", path, markerLine(text, f.Name, len(seen)), f.Name, why)
		}
		seen[filepath.Clean(f.Name)] = true
	}
	commands := false
	for n, line := range strings.Split(string(a.Comment), "\n") {
		word := strings.TrimLeft(line, " \t\r")
		commands = commands || word != "" && word[0] != '#'
		if found := endsEarly.FindStringSubmatch(line); found != nil {
			return nil, nil, fmt.Errorf("%s:%d: stop ends the script, which then passes; to run to a record, use until %s", path, n+1, found[1])
		}
	}
	if !commands {
		return nil, nil, fmt.Errorf("%s: it has no commands", path)
	}
	return text, a.Comment, nil
}

// endsEarly matches the command stop with a record or a flag. The author probably means until, because testscript's stop ends the script.
var endsEarly = regexp.MustCompile(`^\s*(?:\[[^]]*\]\s*)*stop\s+((?:0x[0-9a-fA-F]+|[0-9]+|-).*)$`)

// markerLine returns the line number, from 1, of a file's header in the archive. number counts the files from 0.
func markerLine(text []byte, name string, number int) int {
	at := 0
	for n, line := range bytes.Split(text, []byte("\n")) {
		if f := txtar.Parse(append(line, '\n')).Files; len(f) == 1 {
			if at == number && f[0].Name == name {
				return n + 1
			}
			at++
		}
	}
	return 1
}

// reporter receives testscript's reports about a script.
type reporter struct {
	verbose         bool
	failed, skipped bool
	reason          string
	log             strings.Builder
}

func (t *reporter) Skip(args ...any) {
	t.skipped, t.reason = true, fmt.Sprint(args...)
	runtime.Goexit()
}

func (t *reporter) Fatal(args ...any) {
	t.reason = fmt.Sprint(args...)
	t.FailNow()
}

func (t *reporter) FailNow() {
	t.failed = true
	runtime.Goexit()
}

func (t *reporter) Parallel()                            {}
func (t *reporter) Log(args ...any)                      { fmt.Fprint(&t.log, args...) }
func (t *reporter) Run(_ string, f func(t testscript.T)) { f(t) }
func (t *reporter) Verbose() bool                        { return t.verbose }

// place returns the position of a failure and its reason.
func (r *run) place(t *reporter, path string) string {
	if t.reason != "" {
		return path + ": " + t.reason
	}
	log, mark := "\n"+t.log.String(), "\nFAIL: "+path+":" // the search does not use a regular expression, because the path may be invalid UTF-8
	at := strings.LastIndex(log, mark)
	if at < 0 {
		return path + ": it failed"
	}
	first, _, _ := strings.Cut(log[at+len(mark):], "\n")
	line, why, _ := strings.Cut(first, ": ")
	if r.failure != "" { // the reason may have several lines
		why = r.failure
	}
	return fmt.Sprintf("%s:%s: %s", path, line, strings.ReplaceAll(why, r.work, "$WORK"))
}

// unmet is an error with which a command passes if `!` precedes it: an expectation is not met, or an action failed. Any other error, such as a
// misspelled command, also fails the script with `!`.
type unmet struct{ error }

func (u unmet) Unwrap() error { return u.error }

// command returns one of the script's commands.
func (r *run) command(of scriptCommand) func(*testscript.TestScript, bool, []string) {
	name := of.name
	return func(ts *testscript.TestScript, neg bool, args []string) {
		err := of.do(&call{run: r, ts: ts, name: name, args: args})
		if r.ctx.Err() != nil { // the timeout may have changed the result of the command
			err = fmt.Errorf("%s: %w", name, context.Cause(r.ctx))
		}
		expected := unmet{}
		switch {
		case err == nil && neg:
			err = fmt.Errorf("unexpected success of %s", strings.Join(append([]string{name}, args...), " "))
		case err == nil:
			return
		case neg && errors.As(err, &expected):
			if of.asks {
				ts.Logf("%v", err)
			} else {
				fmt.Fprintln(ts.Stderr(), err)
			}
			return
		}
		r.failure = err.Error()
		if where := (*ir.Error)(nil); errors.As(err, &where) && where.Text != "" {
			r.failure += "\n" + where.Snippet()
		}
		ts.Fatalf("%s", r.failure)
	}
}
