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
		Short: "Debug exits in an editor, by the Debug Adapter Protocol",
		Long: `dap is a debug adapter: an editor starts it, and shows what it says by the Debug Adapter
Protocol. It launches a program, attaches to a process or opens a core, stops at exits, shows the
rebuilt frames with their values, and has the interpreter go on from there by instructions of
the IR, forwards and backwards, while the process stands as it is.

What other verbs are told by flags is in the editor's launch configuration, by the same names: program,
args, cwd, env, stdin; pid; core, exe, sysroot, debugDir; ir, layout, object, noSelfDescription, trustIR,
stopOnEntry, token. doc/editors.md has examples for VS Code, Neovim, Emacs and Helix.

It speaks on standard input and output. With --listen it waits for one client on a TCP address,
which is printed on standard error, and ends with it. A client can start programs. So on Linux
only programs of the same user are served, and the address must be one of this machine alone.
With --from-anywhere, and on other systems, any user is served whose launch configuration has
the token that is printed below the address: "token": "…". A peer that is refused ends
nothing: the next one may connect.

A process that was attached to goes on unharmed however dap ends, that by SIGKILL included, and
a program that it launched ends with it.

Exit status: 0 the client has disconnected or is gone, 2 it failed; 130, 143 or 129 after SIGINT,
SIGTERM or SIGHUP.`,
		Example: `  reframe dap
  reframe dap --listen 127.0.0.1:0`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.dap(c.Context(), &k, c.Flags().Changed("listen"))
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().StringVar(&k.listen, "listen", "", "wait for one client at this TCP `ADDRESS`, such as 127.0.0.1:4711; port 0 is any that is free")
	c.Flags().BoolVar(&k.anywhere, "from-anywhere", false, "with --listen: accept other machines and users, which must know the printed token")
	return c
}

// noArguments rejects positional arguments.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%s takes no %q: what is debugged is in the editor's launch configuration", c.Name(), args[0])
	}
	return nil
}

// dap serves one client.
func (a *app) dap(ctx context.Context, k *served, listens bool) error {
	if k.anywhere && !listens {
		return usage("--from-anywhere is for --listen")
	}
	// Re-enable the garbage collector: a session is long-lived.
	collecting(100)
	// A client that disconnects must not end reframe before it has detached from the process.
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
	k := inputs{pid: o.PID, core: o.Core, files: ptrace.CoreOptions{Exe: o.Exe, Sysroot: o.Sysroot, DebugDirs: o.DebugDir}, objects: o.Object,
		Inputs: flags.Inputs{Modules: o.IR, Layouts: o.Layout}, mute: o.NoSelfDescription}
	if err := meantTarget(o); err != nil {
		return nil, err
	}
	k.Modules = slices.DeleteFunc(k.Modules, func(name string) bool { return name == inProcess }) // the target's own description is used anyway
	k.follows = k.core == ""
	options, err := k.options(nil)
	if err != nil {
		return nil, err
	}
	options.TrustIR = o.TrustIR
	config := session.Config{Options: options, Warn: o.Warn}
	config.Limits.Steps = o.Steps
	config.Describe = k.describer(o.Warn)
	if o.Core != "" {
		t, err := k.target(true)
		if err != nil {
			return nil, err
		}
		return &dap.Target{Session: session.OfCore(t, config), Name: filepath.Base(o.Core), Close: func(bool) error {
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
	switch {
	case o.Launch && o.Program == "":
		return errors.New("\"program\" of the launch configuration is missing: what is to be started")
	case o.Launch && (o.PID != 0 || o.Core != ""):
		return errors.New("\"pid\" and \"core\" are for a configuration with \"request\": \"attach\"")
	case o.Launch && len(o.Object) > 0:
		return errors.New("\"object\" says where code lies in a process that runs already: \"request\": \"attach\"")
	case o.Launch:
	case o.Program != "":
		return errors.New("\"program\" is for a configuration with \"request\": \"launch\"; that of a core is \"exe\"")
	case (o.PID != 0) == (o.Core != ""):
		return errors.New("\"pid\" or \"core\" of the launch configuration: one of them")
	case o.PID < 0:
		return fmt.Errorf("pid %d: a process number is above 0", o.PID)
	}
	if o.Core == "" && (o.Exe != "" || o.Sysroot != "") {
		return errors.New("\"exe\" and \"sysroot\" are for a core; of a process the files are known")
	}
	return nil
}
