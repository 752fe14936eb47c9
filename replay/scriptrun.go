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

	"reframe/deopt"
	"reframe/deopt/dumps"
	"reframe/deopt/frame"
	"reframe/internal/flags"
	"reframe/ptrace"
)

// run is a script while it runs: the program or core that it looks at, and what came of the last commands.
type run struct {
	scripts *Scripts
	ctx     context.Context
	comment string
	dir     string                 // of the script
	work    string                 // $WORK
	started atomic.Pointer[string] // the same, for who has to end what the script started
	vars    []string
	failure string // why it fails, where one of its own commands says so

	session *ptrace.Session // of a program that was launched, until it has ended
	process *os.Process
	target  *ptrace.Target // of a core
	options deopt.Options
	given   flags.Inputs // what options were read from
	dumps   *dumps.Set   // the modules of a program that runs, which may write more; nil of a core
	grows   bool         // a folder or a pattern of them may lead to more

	view   *deopt.View  // nil where it is to be made anew
	frame  *deopt.Frame // that is meant, nil for the innermost one with a record
	thread *deopt.Thread

	printed *string        // what the program or the interpreter printed, nil where neither has ended
	exit    *exit          // how it ended, nil where it did not
	resumed *frame.Resumed // nil where nothing was resumed
}

// exit is how a program ended, or would have.
type exit struct {
	code   int
	signal int // 0 where it exited
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

// assignments may be those of the command env: which variables there are a script does not tell.
var assignments = regexp.MustCompile(`[ \t]([A-Za-z_][A-Za-z_0-9]*)=`)

// close lets go of what the script looks at. A program that was launched is ended.
func (r *run) close() {
	if r.process != nil {
		_ = r.process.Kill() // an error means that it has ended
		_ = r.process.Release()
	}
	if r.session != nil {
		_ = r.session.Detach() // of a process that was killed
	}
	if r.target != nil {
		r.target.Close()
	}
	r.session, r.process, r.target, r.options = nil, nil, nil, deopt.Options{}
	r.moved()
}

// moved forgets what was seen: it is no more.
func (r *run) moved() {
	r.view, r.frame, r.thread = nil, nil, nil
	r.forget()
}

// forget forgets what came of what was seen, so that it is not taken for what comes of it now.
func (r *run) forget() { r.printed, r.exit, r.resumed = nil, nil, nil }

// spawning are the commands that start programs.
var spawning = regexp.MustCompile(`(?m)\b(exec|launch|verify)\b`)

// kill ends what the script started and what that started, and says whether there was something. They are known by $WORK, a
// name that nobody else has, in the environment with which they began (proc(5)); elsewhere than on Linux there is none to be
// found.
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
