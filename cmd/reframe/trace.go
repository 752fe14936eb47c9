package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/cli/flags"
	"example.com/reframe/internal/report/text"
	"example.com/reframe/ptrace"
)

// traced holds the flags of trace.
type traced struct {
	watched
	dry     bool
	lossy   bool
	options trace.Options
	visitor visitorFlags
}

func (a *app) traceCommand() *cobra.Command {
	var k traced
	o := &k.options
	c := &cobra.Command{
		Use:   "trace {PID | [flags] -- COMMAND [ARG...]}",
		Short: "Log every exit of a process as it happens",
		Long: `trace sets a breakpoint at the site of each stack map record, and logs each exit with the record's
values, one line per exit, in order per thread. The process keeps running. trace follows the files that
the process loads and the objects that its JIT registers, takes the IR and layouts that they contain,
and removes breakpoints when their code is unregistered.

All bytes are restored when the trace ends, even by SIGKILL: a second process, rf-guard, does
the tracing. If rf-guard is killed, alone or with reframe, a third process, rf-watchdog, restores the bytes.
Meanwhile a SIGTRAP handler in the process makes its threads wait. doc/user/threats.md lists the
guarantees for each kind of kill, and the processes that cannot have the handler.

--remote ADDR traces the process that a stub of gdb's remote protocol holds: gdbserver, lldb-server, qemu,
valgrind. The stub sets the breakpoints, and the process runs on when the trace ends. If reframe is killed
by SIGKILL, the stub decides about the breakpoints (doc/user/remote.md).

Where the program is meant to patch its code, as in the shadow of a stackmap or in the sled of a
patchpoint, a debug register holds the breakpoint and the code is not changed; x86-64 has four. If the
program overwrites any other breakpoint, it is set again within 10 ms, if that is safe. trace then
reports that exits may be missing, and the exit status is 1.

The breakpoint of a stackmap or patchpoint is at the site, that of a statepoint or
deoptimize call on the call. With --at it is at the entry of a function such as
__llvm_deoptimize, and the shown frame is that of the caller. If no such function exists, trace
fails and suggests similar names, unless --wait is given. Name a function by its symbol (_ZN2ns1fEi),
by its source name (ns::f(int)), without its parameters (ns::f), or by a regular expression that
matches a part of one of these: /^ns::/. --stop-at ends the trace at the first
exit whose slots fulfil a condition, and shows only that exit, with all of its frames; --log also shows
the exits before it. reframe help conditions explains conditions.

Exits are written to standard output or, with COMMAND, which uses that itself, to standard
error. -o FILE writes them to a new file, or to an existing one with --force; -o - is standard
output. The summary goes to standard error; with --json it is also the last object. If --json goes to
standard error, warnings are objects too, and nothing else is written there.

--visitor FUNCTION checks a garbage collector's stack walker: FUNCTION is the collector's own function that
visits a root, and its argument N (--visitor-argument, from 0) holds the address of the slot. For each
collection, trace compares the visited slots with those that the records of the thread's statepoints list.
It reports a slot that is missing, extra, visited twice or has the wrong base, and a skipped frame. A
collection begins at its first visit, or at the call of --collector FUNCTION, so that a walk without any
visit is seen too. It ends when the call of the innermost statepoint returns. The collector must run on the thread
whose stack it walks. A slot that holds null need not be visited. --limit counts collections.

If 1 MiB of output waits and its reader takes nothing for 1 s, or if a signal such as SIGSTOP stops
reframe, the breakpoints are removed and the process keeps running. They are set again when the
reader has taken most of the output, or reframe continues; a line of the output and the summary show
for how long exits are missing. With --lossy, the process never waits for the reader of the output:
up to 1 MiB of exits is queued, further ones are dropped, and the summary counts them.

Exit status: 0 OK, 1 a recorded value or a frame is unavailable, exits may be missing, or --visitor found
something, 2 no exit or no collection occurred, or error; 130, 143 or 129 after SIGINT, SIGTERM or SIGHUP. A second signal ends
reframe after 5 s, a third one at once, without the summary.`,
		Example: `  reframe trace 41822 --ir loop.ll
  reframe trace --ir loop.ll -o exits.txt -- lli -jit-kind=mcjit loop.ll
  reframe trace -p 41822 --site deoptimize --function 'sum_.*' --limit 100 --json
  reframe trace -p 41822 --ir loop.ll --stop-at '%i > 100 && (%acc == 0x10 || %acc < %i * 2)'
  reframe trace --remote 127.0.0.1:2345 --ir loop.ll
  reframe trace -p 41822 --at __llvm_deoptimize --count --for 10s
  reframe trace --visitor visit_root --visitor-base 1 --collector collect --ir gc.ll -- ./program
  reframe trace -p 41822 --dry-run`,
		RunE: func(c *cobra.Command, args []string) error {
			args, err := targetOrCommand(c, args)
			if err == nil {
				err = k.read(a, c, args)
			}
			if err != nil {
				return err
			}
			if k.dry {
				return a.plan(&k)
			}
			if k.visitor.function != nil {
				return a.traceVisitor(c.Context(), &k, args)
			}
			return a.trace(c.Context(), &k, args)
		},
		ValidArgsFunction: completeCommand,
	}
	k.controls = true
	k.addFlags(c)
	k.selfFlag(c)
	f := c.Flags()
	f.BoolVar(&o.Full, "full", false, "show all frames of the thread")
	f.BoolVar(&o.Quiet, "count", false, "count exits, and do not show them")
	f.StringSliceVar(&o.By, "by", nil, "with --count: count by the values of `NAMES`, such as method,position,why: slots, facts of a condition, or texts of the layout's info")
	flags.Stop(f, &k.stop, flags.Usage{"stop-at": "end at the first exit that matches the condition `COND` (reframe help conditions)"})
	f.BoolVar(&o.Log, "log", false, "with --stop-at: also show the exits before it")
	f.BoolVar(&k.lossy, "lossy", false, "drop and count exits if the reader of the output is too slow")
	k.visitor.add(f)
	f.BoolVar(&k.dry, "dry-run", false, "list the bytes that would be overwritten, and write nothing")
	f.BoolVar(&a.json, "json", false, "print one JSON object a line (schema "+trace.ExitSchema+")")
	return c
}

// read parses the flags into options, and rejects contradictory ones.
func (k *traced) read(a *app, c *cobra.Command, args []string) error {
	o := &k.options
	changed := c.Flags().Changed
	if k.dry && !changed("pid") {
		return usage("--dry-run requires a running process: -p PID")
	}
	if err := k.check(c, args); err != nil {
		return err
	}
	switch {
	case o.Quiet && (o.Full || changed("every")):
		return usage("--count cannot be combined with --full or --every: it shows no exits")
	case len(o.By) > 0 && !o.Quiet:
		return usage("--by requires --count")
	case o.Log && !changed("stop-at"):
		return usage("--log requires --stop-at")
	case o.Log && o.Quiet:
		return usage("--count cannot be combined with --log: it shows no exits")
	case o.Quiet && k.lossy:
		return usage("--lossy cannot be combined with --count, which shows no exits")
	}
	err := k.visitor.check(c, k)
	if err != nil {
		return err
	}
	k.follows = true
	if o.Options, err = k.inputs.options(a); err != nil {
		return err
	}
	if o.Stop, err = k.condition(c, &o.Options); err != nil {
		return err
	}
	if k.visitor.function != nil {
		k.exits.At = k.visitor.functions()
	}
	o.ExitFilter, o.At, o.Every, o.Limit, o.For, o.Wait = k.exits.Filter, k.exits.At, k.every, k.limit, k.time, k.wait || len(args) > 0
	return nil
}

func (a *app) trace(ctx context.Context, k *traced, command []string) (err error) {
	out, closed, err := k.created(ctx, a, command)
	if err != nil {
		return err
	}
	defer func() { err = closed(err) }()
	// Enable garbage collection: a trace may last for days, and the process may have a million sites.
	collecting(400)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := newExitWriter(a, out, cancel)
	w.lossy = k.lossy
	if !k.options.Quiet {
		k.options.Gap = w.gap
	}
	k.options.Warn = w.warn
	k.options.Describe, k.options.Mistake = k.describer(w.warn), k.mistaken(w.warn)
	s, err := k.open(ctx, command)
	if err != nil {
		return err
	}
	w.holds(ctx, s.LetRun)
	sum, err := trace.Run(ctx, s, k.options, w.exit)
	if late := s.Detach(); err == nil {
		err = late
	}
	if sum.End.Kind == trace.EndStopped {
		w.writeLast()
	}
	end := tracedStatus(sum, err, len(k.mistakes) > 0 || w.dropped > 0)
	if a.json {
		w.summary(traceSummary{sum, w.dropped, end.why()})
	}
	if failed := w.close(); failed != nil {
		return k.writeError(ctx, failed) // the failed write caused the other errors
	}
	if w.alone() {
		return end.silent()
	}
	var by interruption
	if err == nil || errors.As(err, &by) || sum.Exits > 0 {
		end := text.TraceEnd{Limits: k.runLimits(), Quiet: k.options.Quiet, By: k.options.By, Dropped: w.dropped, Nameless: k.nameless()}
		if k.options.Stop != nil {
			end.Stop = k.options.Stop.Text
		}
		_ = text.PrintTraced(text.Fold(a.stderr), sum, end) // the error cannot be reported anywhere
		w.hints()
	}
	return end.error
}

// traceSummary is the last object of --json.
type traceSummary struct {
	*trace.Summary
	Dropped uint64 `json:"dropped,omitempty"` // number of exits that --lossy did not show
	Error   string `json:"error,omitempty"`
}

// tracedStatus returns the exit status of a trace that ended with err. partial is true if exits were dropped, or if the code was not compiled from a
// module of --ir.
func tracedStatus(s *trace.Summary, err error, partial bool) ended {
	var by interruption
	switch {
	case errors.As(err, &by):
		return ended{&status{by.status(), ""}}
	case err != nil:
		return ended{err}
	case s.Exits == 0 && s.Overwritten == 0 && s.Unwatched == 0:
		return ended{&status{exitFailed, "no exit occurred"}}
	case s.Unavailable > 0 || s.Overwritten > 0 || s.Unwatched > 0 || partial:
		return ended{&status{exitPartial, ""}}
	}
	return ended{}
}

// plan prints the bytes of code that a trace would overwrite.
func (a *app) plan(k *traced) error {
	objects, err := k.given()
	if err != nil {
		return err
	}
	t, err := ptrace.Survey(k.pid, ptrace.Options{Objects: objects})
	if err != nil {
		return err
	}
	defer t.Close()
	w := newExitWriter(a, a.stdout, func(error) {})
	k.options.Warn = w.warn
	k.options.Describe = k.describer(w.warn)
	list, none := trace.Plan(t, k.options)
	for i := range list {
		w.planned(&list[i])
	}
	if err := w.close(); err != nil {
		return err
	}
	return none
}
