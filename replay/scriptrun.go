package replay

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/cli/flags"
	"example.com/reframe/internal/vm/described"
	"example.com/reframe/ptrace"
)

// run is a running script: its program or core, and the results of the last commands.
type run struct {
	scripts *Scripts
	ctx     context.Context
	comment string
	dir     string                 // the folder of the script
	work    string                 // $WORK
	started atomic.Pointer[string] // the same folder as work, which kill reads concurrently
	vars    []string
	failure string // failure of a command of scriptCommands

	session *ptrace.Session // the launched program, until it has ended
	process *os.Process
	target  *ptrace.Target // the core
	options deopt.Options
	given   flags.Inputs     // the files that gave the current options
	dumps   *described.Dumps // modules of a running program, which may write more; nil for a core
	grows   bool             // a folder or a pattern may match more modules later

	view   *deopt.View  // nil until it is built
	frame  *deopt.Frame // the chosen frame; nil for the innermost one with a record
	thread *deopt.Thread

	printed *string        // output of the program or the interpreter; nil until one has ended
	exit    *exit          // how the program ended; nil until then
	resumed *frame.Resumed // result of resume, or nil
}

// exit describes how a program ended, or how it would have ended by the interpreter's result.
type exit struct {
	code   int
	signal int // 0 if the program exited
}

// setup completes the script's environment.
func (r *run) setup(env *testscript.Env) error {
	r.work = env.WorkDir
	r.started.Store(&r.work)
	env.Vars = append(env.Vars, r.scripts.Env...)
	env.Setenv("SCRIPTDIR", r.dir)
	for _, v := range env.Vars {
		name, _, _ := strings.Cut(v, "=")
		r.vars = append(r.vars, name)
	}
	for _, set := range assignments.FindAllStringSubmatch(r.comment, -1) {
		if name := set[1]; !slices.Contains(r.vars, name) {
			r.vars = append(r.vars, name)
		}
	}
	env.Defer(r.close)
	return nil
}

// assignments matches possible arguments of the env command. It is needed because testscript does not list its variables.
var assignments = regexp.MustCompile(`[ \t]([A-Za-z_][A-Za-z_0-9]*)=`)

// close releases the script's target. It ends a launched program.
func (r *run) close() {
	if r.process != nil {
		_ = r.process.Kill() // an error means that it has ended
		_ = r.process.Release()
	}
	if r.session != nil {
		_ = r.session.Detach() // an error means that the process was killed
	}
	if r.target != nil {
		r.target.Close()
	}
	r.session, r.process, r.target, r.options = nil, nil, nil, deopt.Options{}
	r.moved()
}

// moved discards the view, because the target has run.
func (r *run) moved() {
	r.view, r.frame, r.thread = nil, nil, nil
	r.forget()
}

// forget discards the results of earlier commands, so that no check reads an old result.
func (r *run) forget() { r.printed, r.exit, r.resumed = nil, nil, nil }

// spawning matches the commands that start programs.
var spawning = regexp.MustCompile(`(?m)\b(exec|launch|verify)\b`)

// kill kills all processes that the script has started, directly or indirectly, and reports whether it found any. It recognizes them by $WORK, a
// unique name, in their initial environment (proc(5)), which only Linux provides.
func (r *run) kill() (found bool) {
	work := r.started.Load()
	if work == nil || !spawning.MatchString(r.comment) {
		return false
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range dirs {
		found = kill(path, "WORK="+*work) || found
	}
	return found
}
