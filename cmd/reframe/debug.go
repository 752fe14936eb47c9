package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/check/handover"
	"example.com/reframe/internal/debug/prompt"
	"example.com/reframe/internal/debug/session"
	"example.com/reframe/internal/report/text"
	"example.com/reframe/internal/vm/protocol"
	"example.com/reframe/ptrace"
)

// debugged holds the flags of debug.
type debugged struct {
	inputs
	scripts []string
	stdin   string
	steps   uint64
	with    string
	trustIR bool
}

func (a *app) debugCommand() *cobra.Command {
	var k debugged
	k.controls = true
	c := &cobra.Command{
		Use:   "debug {PID | CORE | [flags] -- COMMAND [ARG...]} [--ir FILE.ll]",
		Short: "Debug exits at a prompt, like gdb",
		Long: `debug starts a program, attaches to a process or opens a core, and reads commands at a prompt, like
gdb. break selects the exits at which to stop, continue resumes the process, and bt, locals, print and
x show its state. From an exit, step, next, finish and until run the interpreter by instructions of the
IR, over its own copy of memory, while the process stays stopped; back steps backwards. set changes a
value for the interpreter, to try again. help lists the commands, and help COMMAND explains one.

Breakpoints are in the process only while it runs: a stopped process has none. When the session
ends, a process that it started is killed. An attached process continues unharmed, even if reframe is
killed. A started program cannot read from the terminal: --stdin FILE is its standard input.

` + positionalHelp + ` ` + coreHelp + `

--remote ADDR controls the process that a stub of gdb's remote protocol holds: gdbserver, lldb-server,
qemu, valgrind. The process runs on without a debugger when the session ends, unless the session has neither
let it run nor set a breakpoint. --delve ADDR looks at the process that dlv --headless holds
(doc/user/remote.md, delve.md).

With --with COMMAND the virtual machine's own interpreter runs the frames that a layout
describes. step, next, finish, back and restart then work by its instructions, if it can stop after
an instruction (doc/user/protocol.md); resume runs to the end.

-x FILE runs the commands in FILE, one per line. The first error ends the session; so does the first
error in commands from standard input that is not a terminal. Typed lines are kept in
~/.local/state/reframe/history.

Ctrl-C stops the running process, or cancels the running command. It does not end the session.

Exit status: 0 the session was ended; 2 it could not start, or a command of -x failed; 143 or 129
after SIGTERM or SIGHUP.`,
		Example: `  reframe debug --ir loop.ll -- ./host loop.o
  reframe debug -p 41822 --ir loop.ll --layout loop.layout.json
  reframe debug exit.core --ir loop.ll --layout loop.layout.json
  reframe debug --with './myvm --serve program' exit.core
  reframe debug --ir loop.ll -x session.txt -- ./host loop.o`,
		RunE: func(c *cobra.Command, args []string) error {
			args, err := targetOrCommand(c, args)
			if err != nil {
				return err
			}
			if err := k.check(c, args); err != nil {
				return err
			}
			return a.debug(c.Context(), &k, args)
		},
		ValidArgsFunction: completeCommand,
	}
	k.controlFlags(c)
	k.coreFlags(c)
	k.debuggerFlags(c)
	k.replyFlag(c)
	k.objectFlag(c)
	k.selfFlag(c)
	f := c.Flags()
	f.SetInterspersed(false) // words after the command's name belong to the command
	f.StringArrayVarP(&k.scripts, "execute", "x", nil, "run the commands in `FILE` first (repeatable)")
	f.StringVar(&k.stdin, "stdin", "", "`FILE` is the standard input of the started program (default "+os.DevNull+")")
	f.StringVar(&k.with, "with", "", "run the VM's own interpreter instead of the reference interpreter: the shell command `COMMAND`, which speaks doc/user/protocol.md")
	f.BoolVar(&k.trustIR, "trust-ir", false, "use the module of --ir even if the code was not compiled from it, to find the difference")
	f.Uint64Var(&k.steps, "steps", 0, "bound the interpreter to `N` instructions per exit (default 1000000000)")
	return c
}

// check rejects contradictory flags.
func (k *debugged) check(c *cobra.Command, command []string) error {
	given := c.Flags().Changed
	switch {
	case len(command) > 0 && len(kindsGiven(c)) > 0:
		return usage("%s and a command to start cannot be combined", flagName(kindsGiven(c)[0]))
	case len(command) == 0 && len(kindsGiven(c)) == 0:
		return usage("usage: reframe debug PID | CORE | -- COMMAND")
	case len(command) > 0 && len(k.objects) > 0:
		return usage("--object requires a running process: -p PID")
	case len(command) == 0 && given("stdin"):
		return usage("--stdin requires a command to start")
	case given("with") && strings.TrimSpace(k.with) == "":
		return usage("the command of --with is empty")
	case len(command) > 0:
		return k.checkFiles(c)
	}
	return k.inputs.check(c)
}

func (a *app) debug(ctx context.Context, k *debugged, command []string) (err error) {
	k.follows = !k.still()
	o, err := k.options(a)
	if err != nil {
		return err
	}
	o.TrustIR = k.trustIR
	// Re-enable the garbage collector: a session is long-lived.
	collecting(100)
	// Ctrl-C cancels the running command, and the session continues.
	signal.Reset(os.Interrupt)
	c := session.Config{Options: o, Limits: deopt.Limits{Steps: k.steps}}
	c.Warn = func(message string) { fmt.Fprintln(text.Fold(a.stderr), "reframe: "+text.PrintableLines(message)) }
	c.Describe = k.describer(c.Warn)
	if k.with != "" {
		c.With = func(ctx context.Context, t *ptrace.Target) (*protocol.Child, error) {
			return handover.Start(ctx, k.with, t, a.stderr)
		}
	}
	s, leave, err := k.begin(ctx, c, command)
	if err != nil {
		return err
	}
	defer s.Close()
	p := prompt.New(s, text.Fold(a.stdout), text.Printer{Style: a.style()})
	p.Leave, p.Launched = leave, len(command) > 0
	p.Files = prompt.Files{Core: k.core, Options: k.inputs.files, Modules: k.Modules, Layouts: k.Layouts}
	defer func() { err = errors.Join(err, p.Close()) }()
	if len(command) == 0 {
		if _, err := p.Do(ctx, "frame"); err != nil && p.Err() == nil { // show where the target is stopped
			c.Warn(err.Error())
		}
	}
	for _, path := range k.scripts {
		over, err := a.commandsOf(ctx, p, path)
		if err != nil || over {
			return err
		}
	}
	in := os.Stdin
	switch {
	case term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(a.stdout.Fd())):
		_, err = p.Interact(ctx, prompt.NewTerminal(p, in, a.stdout, prompt.HistoryFile()), false)
	case len(k.scripts) == 0:
		_, err = p.Interact(ctx, p.Script(in), true)
	}
	return a.debugEnd(err)
}

// commandsOf runs the commands of a file. over reports whether they ended the session.
func (a *app) commandsOf(ctx context.Context, p *prompt.Prompt, path string) (over bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	over, err = p.Interact(ctx, p.Script(f), true)
	if err != nil {
		err = a.debugEnd(fmt.Errorf("-x %s: %w", path, err))
	}
	return over, err
}

// debugEnd returns the exit status for the error that ended a session.
func (a *app) debugEnd(err error) error {
	if by := (interruption{}); errors.As(err, &by) {
		return &status{by.status(), by.Error()}
	}
	return err
}

// begin attaches to the target. leave detaches from it or kills it; it is nil for a core.
func (k *debugged) begin(ctx context.Context, c session.Config, command []string) (s *session.Session, leave func(kill bool) error, err error) {
	if k.still() {
		t, err := k.target(ctx, false)
		if err != nil {
			return nil, nil, err
		}
		return session.OfCore(t, c), nil, nil
	}
	var process *ptrace.Session
	if len(command) > 0 {
		stdin := k.stdin
		if stdin == "" {
			stdin = os.DevNull
		}
		process, err = ptrace.LaunchWith(ctx, command, ptrace.LaunchOptions{Bound: true, Group: true, Stdin: stdin})
	} else {
		process, err = k.attach(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	s = session.OfProcess(process, c)
	return s, leaving(process, s), nil
}

// leaving returns a function that ends a session with a process: it kills the process or detaches from it.
func leaving(p *ptrace.Session, s *session.Session) func(kill bool) error {
	return func(kill bool) error {
		if kill {
			return p.Kill(!s.Runs())
		}
		return p.Detach()
	}
}
