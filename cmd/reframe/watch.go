package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/base/newfile"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/cli/flags"
	"example.com/reframe/internal/report/text"
	"example.com/reframe/internal/vm/condition"
	"example.com/reframe/ptrace"
)

// watched holds the flags of the verbs that follow a process from exit to exit. They select the process and the exits.
type watched struct {
	inputs
	exits  flags.Exits
	wait   bool
	every  uint64
	limit  uint64
	stop   string
	time   time.Duration
	output string
	force  bool
}

func (w *watched) addFlags(c *cobra.Command) {
	w.controlFlags(c)
	if w.controls {
		w.remoteFlags(c)
	} else {
		w.withoutCore(c, "core", "remote", "delve")
	}
	w.objectFlag(c)
	w.siteFlags(c)
	f := c.Flags()
	f.SetInterspersed(false) // words after the command's name belong to the command
	flags.Some(f, &w.every, &w.limit, flags.Usage{"every": "show only every `N`-th exit", "limit": "end after `N` exits"})
	w.forFlag(c)
	f.StringVarP(&w.output, "output", "o", "", "write the exits to `FILE`, or to standard output (-)")
	forceFlag(c, &w.force)
}

func (w *watched) forFlag(c *cobra.Command) {
	c.Flags().DurationVar(&w.time, "for", 0, "end after this `TIME` (500ms, 10s, 2h)")
}

// siteFlags adds the flags that select exits.
func (w *watched) siteFlags(c *cobra.Command) {
	f := c.Flags()
	addExits(c, &w.exits)
	f.BoolVar(&w.wait, "wait", false, "with -p: wait for functions and records that the process does not have yet")
}

// addExits adds the flags that select exits.
func addExits(c *cobra.Command, e *flags.Exits) {
	e.Add(c.Flags(), flags.Usage{
		"record":   "only exits at records with this `ID` (repeatable)",
		"function": "only exits in functions with this `NAME`, a name or a regular expression",
		"site":     "only exits at sites of `KIND`: " + strings.Join(trace.SiteKinds, ", ") + " (repeatable)",
		"at":       "stop at calls of the function with this `NAME`, or /RE/, instead of sites (repeatable)",
	})
	_ = c.RegisterFlagCompletionFunc("site", cobra.FixedCompletions(trace.SiteKinds, cobra.ShellCompDirectiveNoFileComp))
}

// readExits parses the values of the flags of addExits, and rejects contradictory ones.
func readExits(e *flags.Exits) error {
	if len(e.At) > 0 && (len(e.Records) > 0 || e.Filter.Function != nil || len(e.Filter.Sites) > 0) {
		return usage("--at cannot be combined with --record, --function or --site")
	}
	if err := e.Read(recordID); err != nil {
		return usage("%v", err)
	}
	return nil
}

// check parses the flags, and rejects contradictory ones.
func (w *watched) check(c *cobra.Command, args []string) error {
	changed := c.Flags().Changed
	if err := w.refuseCore(c); err != nil {
		return err
	}
	attaches := changed("pid") || changed("remote")
	switch {
	case changed("object") && len(args) > 0:
		return usage("--object requires a running process: -p PID")
	case attaches && len(args) > 0:
		return usage("%s and a command to start cannot be combined", flagName(kindsGiven(c)[0]))
	case !attaches && len(args) == 0:
		return usage("%s requires a process: -p PID, or -- COMMAND", c.Name())
	case attaches:
		if err := w.inputs.check(c); err != nil {
			return err
		}
	case w.thread != 0:
		return usage("-t %d cannot be combined with a command to start: its thread ids are unknown", w.thread)
	}
	switch {
	case w.every == 0:
		return usage("--every 0: must be above 0")
	case changed("limit") && w.limit == 0:
		return usage("--limit 0: must be above 0")
	case changed("for") && w.time <= 0:
		return usage("--for %v: must be above 0", w.time)
	case changed("output") && w.output == "":
		return usage("-o requires the name of a file")
	}
	return readExits(&w.exits)
}

// condition parses --stop-at. A condition that can never hold is rejected before the process is touched.
func (w *watched) condition(c *cobra.Command, o *deopt.Options) (*condition.Condition, error) {
	stop, err := flags.Condition(c.Flags(), w.stop, o, &w.exits.Filter, w.yet())
	if err != nil {
		return nil, usage("%v", err)
	}
	return stop, nil
}

// open attaches to a running process, or starts one.
func (w *watched) open(ctx context.Context, command []string) (*ptrace.Session, error) {
	if len(command) > 0 {
		return ptrace.Launch(ctx, command)
	}
	return w.attach(ctx)
}

// writePatience is the time after a signal in which the reader of a pipe may still read output.
const writePatience = time.Second

// created returns the stream for exits: a file, standard output, or standard error if a command uses standard output itself. closed closes a file. It
// returns its argument, or else its own error. When ctx is done, created stops waiting for a pipe without a reader, and writes wait for a stalled
// reader only for writePatience.
func (w *watched) created(ctx context.Context, a *app, command []string) (out *os.File, closed func(error) error, err error) {
	// Ignore SIGPIPE: if the reader closes the pipe, reframe must first detach from the process. The failed write ends the verb.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	closed = func(err error) error { return err }
	switch {
	case w.output == standard:
		return a.stdout, closed, nil
	case w.output != "":
		if err := refuseLoss(w.force, []named{{"-o", w.output}}, w.inputFiles(command)); err != nil {
			return nil, nil, err
		}
		if out, err = newfile.Stream(ctx, w.output, w.force); err != nil {
			if by := (interruption{}); errors.As(err, &by) {
				err = &status{by.status(), fmt.Sprintf("interrupted; -o %s has no reader", w.output)}
			}
			return nil, nil, err
		}
		context.AfterFunc(ctx, func() { _ = out.SetWriteDeadline(time.Now().Add(writePatience)) }) // a regular file has no deadline
		return out, func(err error) error { return cmp.Or(err, out.Close()) }, nil
	case len(command) > 0:
		return a.stderr, closed, nil
	}
	return a.stdout, closed, nil
}

// writeError returns the error of a verb that cannot write its output.
func (w *watched) writeError(ctx context.Context, failed error) error {
	var by interruption
	if (errors.Is(failed, os.ErrDeadlineExceeded) || errors.Is(failed, errUnread)) && errors.As(context.Cause(ctx), &by) {
		to := "standard output"
		if w.output != "" {
			to = "-o " + w.output
		}
		return &status{by.status(), fmt.Sprintf("interrupted; the reader of %s stopped reading", to)}
	}
	return failed
}

// runLimits returns the limits for the number of exits and for the time, as the flags set them.
func (w *watched) runLimits() text.Limits { return text.Limits{Exits: w.limit, Time: w.time} }

// completeCommand completes the command to start.
func completeCommand(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}
