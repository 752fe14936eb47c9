package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"example.com/reframe/internal/cli/flags"
	"example.com/reframe/internal/debug/dap"
	"example.com/reframe/internal/debug/session"
	"example.com/reframe/ptrace"
)

// served holds the flags of dap.
type served struct {
	listen   string
	anywhere bool
}

func (a *app) dapCommand() *cobra.Command {
	var k served
	c := &cobra.Command{
		Use:   "dap [flags]",
		Short: "Debug exits in an editor (Debug Adapter Protocol)",
		Long: `dap is a debug adapter: an editor starts it and talks to it by the Debug Adapter Protocol. dap
launches a program, attaches to a process or opens a core, and stops at exits. It shows the rebuilt
frames with their values. From an exit the interpreter can step through the IR, forwards and
backwards, while the process stays stopped.

The settings are members of the editor's launch configuration. To launch a program: program, args,
cwd, env, stdin. To attach: pid. To open a core: core, exe, sysroot, debugDir. To look at a process that
another debugger holds: remote or delve, an address as in the flags. For all: stopOnEntry, and
as flags of other verbs: ir, layout, object, noSelfDescription, trustIR. For a server: token.
doc/user/editors.md has examples for VS Code, Neovim, Emacs and Helix.

dap uses standard input and output. With --listen it waits for one client at a TCP address, which it
prints on standard error, and ends when the client disconnects. A client can start programs.
Therefore dap on Linux serves only programs of the same user, and the address must belong to this
machine only. With --from-anywhere, and on other systems, it serves any user whose launch configuration
has the token that is printed below the address: "token": "…". After a refused connection dap
waits for the next one.

An attached process continues unharmed when dap ends, even if dap is killed by SIGKILL. A launched
program ends with dap.

Exit status: 0 the client disconnected, 2 error; 130, 143 or 129 after SIGINT, SIGTERM or SIGHUP.`,
		Example: `  reframe dap
  reframe dap --listen 127.0.0.1:0`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.dap(c.Context(), &k, c.Flags().Changed("listen"))
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().StringVar(&k.listen, "listen", "", "wait for one client at this TCP `ADDRESS`, such as 127.0.0.1:4711; port 0 selects a free port")
	c.Flags().BoolVar(&k.anywhere, "from-anywhere", false, "with --listen: accept other users and machines that send the printed token")
	return c
}

// noArguments rejects positional arguments.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%s takes no argument %q: the editor's launch configuration selects the target", c.Name(), args[0])
	}
	return nil
}

// dap serves one client.
func (a *app) dap(ctx context.Context, k *served, listens bool) error {
	if k.anywhere && !listens {
		return usage("--from-anywhere requires --listen")
	}
	// Re-enable the garbage collector: a session is long-lived.
	collecting(100)
	// Ignore SIGPIPE: if the client disconnects, reframe must first detach from the process.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	server := &dap.Server{Open: a.openForEditor}
	var err error
	if listens {
		err = a.serveNext(ctx, k, server)
	} else {
		err = server.Serve(ctx, os.Stdin, a.stdout)
		var refused *dap.Refused
		if errors.As(err, &refused) {
			err = refused.Why
		}
	}
	var by interruption
	switch {
	case !errors.As(context.Cause(ctx), &by):
		return err
	case err == nil || errors.As(err, &by): // interrupted while waiting for a client
		return &status{by.status(), ""}
	}
	return &status{by.status(), err.Error()}
}

// serveNext serves the first peer that is accepted as a client. It reports each refused peer on standard error.
func (a *app) serveNext(ctx context.Context, k *served, server *dap.Server) error {
	l, err := a.listenFor(k)
	if err != nil {
		return err
	}
	defer l.Close()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	fmt.Fprintf(a.stderr, "listening on %v\n", l.Addr())
	server.Accepted = func() { l.Close() }
	byUser := dap.PeersKnown && !k.anywhere
	if !byUser {
		server.Token = rand.Text()
		fmt.Fprintf(a.stderr, "the launch configuration must have \"token\": %q\n", server.Token)
	}
	for {
		client, err := l.AcceptTCP()
		switch {
		case err != nil && ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		}
		if byUser {
			err = dap.SameUser(client)
		}
		if err == nil {
			err = server.Serve(ctx, client, client)
		}
		client.Close()
		var refused *dap.Refused
		var stranger *dap.StrangerError
		if !errors.As(err, &refused) && !errors.As(err, &stranger) {
			return err
		}
		fmt.Fprintf(a.stderr, "refused %v: %v\n", client.RemoteAddr(), err)
	}
}

// listenFor opens the address of --listen.
func (a *app) listenFor(k *served) (*net.TCPListener, error) {
	at, err := net.ResolveTCPAddr("tcp", k.listen)
	if err != nil {
		return nil, usage("--listen %s: %v", k.listen, err)
	}
	if !at.IP.IsLoopback() && !k.anywhere {
		return nil, usage("--listen %s: other machines reach this address, and a client can start programs: use 127.0.0.1, or --from-anywhere", k.listen)
	}
	return net.ListenTCP("tcp", at)
}

// openForEditor opens the target of a launch configuration, as the flags of the other verbs do.
func (a *app) openForEditor(ctx context.Context, o *dap.Opening) (*dap.Target, error) {
	k := inputs{pid: o.PID, core: o.Core, remote: o.Remote, delve: o.Delve, wait: time.Minute, files: ptrace.CoreOptions{Exe: o.Exe, Sysroot: o.Sysroot, DebugDirs: o.DebugDir}, objects: o.Object,
		Inputs: flags.Inputs{Modules: o.IR, Layouts: o.Layout}, mute: o.NoSelfDescription}
	if err := meantTarget(o); err != nil {
		return nil, err
	}
	k.Modules = slices.DeleteFunc(k.Modules, func(name string) bool { return name == inProcess }) // the target's own description is used in any case
	k.follows = !k.still()
	options, err := k.options(nil)
	if err != nil {
		return nil, err
	}
	options.TrustIR = o.TrustIR
	config := session.Config{Options: options, Warn: o.Warn}
	config.Limits.Steps = o.Steps
	config.Describe = k.describer(o.Warn)
	if k.still() {
		t, err := k.target(ctx, true)
		if err != nil {
			return nil, err
		}
		name := cmp.Or(o.Remote, o.Delve)
		if o.Core != "" {
			name = filepath.Base(o.Core)
		}
		return &dap.Target{Session: session.OfCore(t, config), Name: name, Close: func(bool) error {
			t.Close()
			return nil
		}}, nil
	}
	var p *ptrace.Session
	if o.Launch {
		how := ptrace.LaunchOptions{Dir: o.Cwd, Stdin: cmp.Or(o.Stdin, os.DevNull), Stdout: o.Stdout, Stderr: o.Stderr, Group: true, Bound: true}
		for name, value := range o.Env {
			how.Env = append(how.Env, name+"="+value)
		}
		if how.Env != nil {
			slices.Sort(how.Env)
			how.Env = append(os.Environ(), how.Env...)
		}
		p, err = ptrace.LaunchWith(ctx, append([]string{o.Program}, o.Args...), how)
	} else {
		p, err = (&watched{inputs: k}).open(ctx, nil)
	}
	if err != nil {
		return nil, err
	}
	s := session.OfProcess(p, config)
	t := &dap.Target{Session: s, PID: p.PID(), Name: filepath.Base(o.Program), Close: leaving(p, s)}
	if !o.Launch {
		t.Name = fmt.Sprintf("process %d", o.PID)
	}
	return t, nil
}

// meantTarget rejects a launch configuration that does not name exactly one target.
func meantTarget(o *dap.Opening) error {
	targets := 0
	for _, given := range []bool{o.PID != 0, o.Core != "", o.Remote != "", o.Delve != ""} {
		if given {
			targets++
		}
	}
	switch {
	case o.Launch && o.Program == "":
		return errors.New("\"program\" is missing in the launch configuration")
	case o.Launch && targets > 0:
		return errors.New("\"pid\", \"core\", \"remote\" and \"delve\" require \"request\": \"attach\"")
	case o.Launch && len(o.Object) > 0:
		return errors.New("\"object\" requires a running process: \"request\": \"attach\"")
	case o.Launch:
	case o.Program != "":
		return errors.New("\"program\" requires \"request\": \"launch\"; use \"exe\" for the program of a core")
	case targets != 1:
		return errors.New("expected one of \"pid\", \"core\", \"remote\" and \"delve\" in the launch configuration")
	case o.PID < 0:
		return fmt.Errorf("pid %d: a process id must be above 0", o.PID)
	}
	if (o.Launch || o.PID != 0) && (o.Exe != "" || o.Sysroot != "") {
		return errors.New("\"exe\" and \"sysroot\" require \"core\", \"remote\" or \"delve\": the files of a process are known")
	}
	return nil
}
