package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/base/newfile"
	"example.com/reframe/internal/check/handover"
	"example.com/reframe/internal/cli/flags"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/report/text"
	"example.com/reframe/internal/vm/protocheck"
	"example.com/reframe/internal/vm/protocol"
)

// checked holds the flags of protocol check.
type checked struct {
	inputs
	choice  deopt.Choice
	result  string
	timeout time.Duration
	log     string
	force   bool
}

func (a *app) protocolCommand() *cobra.Command {
	var k checked
	c := &cobra.Command{
		Use:   "protocol check COMMAND [PID | CORE]",
		Short: "Test the interpreter of a VM for use with --with",
		Long: `protocol check starts COMMAND by sh -c, as resume --with and verify --with do, sends it the
requests of these verbs, and reports each deviation from doc/user/protocol.md. It is a test for authors of
interpreters.

With a process or a core that is stopped at an exit of the VM, for example one from reframe
record, it sends the exit to the interpreter: as it is, a second time, to an interpreter that has just
started, with unknown members, with memory that cannot be read or written, and with impossible frames,
which the interpreter must report as malformed. A layout of the VM describes the frames, unless
the target contains one. Without a target it runs only the checks that need no exit.

--log FILE keeps each line of the protocol: > marks lines from reframe, < lines from the
interpreter.

` + positionalHelp + `

Exit status: 0 no check that ran has failed, 1 a check failed, 2 error.`,
		Example: `  reframe protocol check './vm --serve program.vm'
  reframe protocol check './vm --serve program.vm' exit.core --layout simple
  reframe protocol check 'python3 vm.py --serve program.vm' 41822 --layout vm.star --log lines`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 || args[0] != "check":
				return usage("usage: reframe protocol check COMMAND")
			case len(args) == 1 || strings.TrimSpace(args[1]) == "":
				return usage("the command of the interpreter is missing: reframe protocol check './vm --serve program.vm'")
			}
			if err := onlyTarget(c, args[2:]); err != nil {
				return err
			}
			return a.check(c, &k, args[1])
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			switch len(args) {
			case 0:
				return []string{"check"}, cobra.ShellCompDirectiveNoFileComp
			case 1:
				return nil, cobra.ShellCompDirectiveDefault
			}
			return completeTarget(c, args[2:], word)
		},
	}
	k.addFlags(c)
	k.selfFlag(c)
	f := c.Flags()
	flags.Choice(f, &k.choice, flags.Usage{
		"frame":    "use the frame with this `number` as the exit" + frameNumbers,
		"function": "use the innermost frame of the function with this `NAME`, or /RE/, as the exit",
	})
	unnumbered(c)
	f.StringVar(&k.result, "result", "", "the result `value` of the call that the frame waits for")
	f.DurationVar(&k.timeout, "timeout", 10*time.Second, "bound the time for each answer of the interpreter")
	f.StringVar(&k.log, "log", "", "log each line of the protocol to `FILE`")
	forceFlag(c, &k.force)
	f.BoolVar(&a.json, "json", false, "print one JSON object (schema "+protocheck.Schema+")")
	return c
}

// check checks each requirement of the protocol, including those about an exit if one is given.
func (a *app) check(c *cobra.Command, k *checked, command string) error {
	o := protocheck.Options{Command: command, Timeout: k.timeout, Errors: a.stderr,
		Hello: protocol.Hello{Arch: machine.AMD64.Name, Order: "little", Pointer: 8, Target: "process"}}
	if k.timeout <= 0 {
		return usage("--timeout %v: must be above 0", k.timeout)
	}
	if len(kindsGiven(c)) > 0 {
		k.depth = k.choice.Depth()
		t, view, err := k.look(a, c, true)
		if err != nil {
			return err
		}
		defer t.Close()
		if o.Moment, err = k.moment(view); err != nil {
			return err
		}
		o.Hello = handover.Hello(t)
	} else if k.choice.Numbered() || k.choice.Function != nil || k.result != "" || len(k.Layouts) > 0 || len(k.Modules) > 0 {
		return usage("-f, --function, --result, --layout and --ir require a process or a core")
	}
	if k.log != "" {
		if err := refuseLoss(k.force, []named{{"--log", k.log}}, k.inputFiles(nil)); err != nil {
			return err
		}
		f, err := newfile.Stream(c.Context(), k.log, k.force)
		if err != nil {
			return err
		}
		defer f.Close()
		o.Log = logTo(f)
	}
	each := func(*protocheck.Result) error { return nil }
	out := text.Fold(a.stdout)
	if !a.json {
		each = func(r *protocheck.Result) error {
			if r.General {
				return nil // the same reason applies to many checks, and the summary counts them
			}
			return text.PrintProtocolCheck(out, a.style(), r)
		}
	}
	report, err := protocheck.Run(c.Context(), o, each)
	if err != nil {
		return err
	}
	if a.json {
		err = text.WriteJSON(a.stdout, report)
	} else {
		err = text.PrintProtocolSummary(out, report)
	}
	if err == nil && report.Broken > 0 {
		err = &status{code: exitPartial} // each violation was printed
	}
	return err
}

// moment returns the chosen exit.
func (k *checked) moment(view *deopt.View) (*protocheck.Moment, error) {
	stack, err := pickVM(view, k.choice, k.result)
	if err != nil {
		return nil, err
	}
	m := &protocheck.Moment{Memory: view.Target()}
	if m.Request, err = stack.Request(); err != nil {
		return nil, err
	}
	m.Request.Steps, m.Request.Tail = 1e9, withTail
	m.Maps, err = view.Target().Mappings()
	m.Symbol = handover.Symbol(view.Target())
	return m, err
}

// logTo returns a function that logs the lines of the protocol to f.
func logTo(f io.Writer) func(line []byte, sent bool) {
	return func(line []byte, sent bool) {
		mark := "<"
		if sent {
			mark = ">"
		}
		fmt.Fprintf(f, "%s %s\n", mark, text.Printable(string(line)))
	}
}
