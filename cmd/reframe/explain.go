package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/report/explain"
	"example.com/reframe/internal/report/html"
	"example.com/reframe/internal/report/text"
	"example.com/reframe/ptrace"
)

func (a *app) explainCommand() *cobra.Command {
	var k inputs
	var source, force bool
	var pageFile string
	q := explain.Question{}
	c := &cobra.Command{
		Use:   "explain {PID | CORE} [ADDRESS | RECORD | '#N']",
		Short: "Explain step by step how one frame was rebuilt",
		Long: `explain shows how one frame was rebuilt: the code at its pc, the unwind rules that led to it,
its record, why that record matches and the nearest ones do not, where each value was read and how its
bytes were interpreted, where the frame resumes, and the instructions around its pc.

Select the frame by its number (-f N, or '#N'), by an address (0x...), or by the id of its record (a
decimal number). The default is the innermost frame that has a record. An address without a frame is
explained as a place in the code. A record at several places is shown with all of them.

--html writes a picture of the exit to FILE instead of the text: one self-contained page with the
machine stack to scale, the registers, the record's bytes, the IR, the frames of a virtual machine and
the code. A selected value is highlighted in all of them (doc/user/picture.md). An existing file is
overwritten only with --force; - is standard output.

The process stays stopped until everything is read; the output shows for how long.
Nothing is written into it.

` + positionalHelp + `
After -p, --core or --remote, the only argument is an address, a record or a frame. ` + coreHelp + `

` + debuggerHelp + `

Exit status: 0 OK, 1 a recorded value is unavailable, 2 nothing to explain, or error.`,
		Example: `  reframe explain 41822 --ir loop.ll
  reframe explain -p 41822 --ir loop.ll --layout loop.layout.json -f 2
  reframe explain 41822 0x7f184e5d308b
  reframe explain -p 41822 2882400000 --json
  reframe explain --core exit.core --ir loop.ll -f 2
  reframe explain 41822 --ir loop.ll --html exit.html`,
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: completeTarget,
		RunE: func(c *cobra.Command, args []string) error {
			changed := c.Flags().Changed
			if len(args) > 0 && len(kindsGiven(c)) == 0 && !strings.HasPrefix(args[0], "0x") && !strings.HasPrefix(args[0], "#") {
				if err := setTarget(c, args[0]); err != nil {
					return err
				}
				args = args[1:]
			}
			if err := asked(&q, c, args); err != nil {
				return err
			}
			if changed("html") {
				switch {
				case pageFile == "":
					return usage("--html requires the name of a file")
				case pageFile == standard && a.json:
					return usage("--html - and --json cannot be combined: both write to standard output")
				}
				if err := refuseLoss(force, []named{{"--html", pageFile}}, k.inputFiles(nil)); err != nil {
					return err
				}
			}
			k.shows = true
			k.depth = (&deopt.Choice{Frame: q.Frame}).Depth()
			t, view, err := k.look(a, c, true)
			if err != nil {
				return err
			}
			defer t.Close()
			e, err := explain.Explain(view, q)
			if err != nil {
				return err
			}
			var picture *html.Page
			if pageFile != "" {
				picture = html.Of(view, e, nil)
			}
			if t.Provider == ptrace.FromProcess {
				e.Target.PauseUS = new(t.Release().Microseconds())
			}
			e.Sources(sourceBudget(source))
			if picture != nil {
				if err := a.writeFile(pageFile, force, 0o600, picture.Write); err != nil {
					return err
				}
			}
			switch {
			case a.json:
				err = text.WriteJSON(a.stdout, e)
			case picture == nil:
				err = text.PrintExplanation(text.Fold(a.stdout), a.style(), e, t)
			}
			if err == nil && (e.Partial() || len(k.mistakes) > 0) {
				return &status{exitPartial, ""}
			}
			return err
		},
	}
	k.addFlags(c)
	k.waitFlag(c)
	k.selfFlag(c)
	sourceFlag(c, &source)
	frameFlag(c, &q.Frame, "explain the frame with this `number`"+frameNumbers)
	c.Flags().StringVar(&pageFile, "html", "", "write a picture of the exit, one HTML page, to `FILE` or to standard output (-)")
	_ = c.RegisterFlagCompletionFunc("html", cobra.FixedCompletions([]string{"html"}, cobra.ShellCompDirectiveFilterFileExt))
	forceFlag(c, &force)
	c.Flags().BoolVar(&a.json, "json", false, "print one JSON object (schema "+explain.Schema+")")
	return c
}

// asked parses the positional argument into q: a frame (#N), an address (0x…) or the id of a record.
func asked(q *explain.Question, c *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return nil
	case 2:
		return usage("expected one address, record or frame, got %s and %s", args[0], args[1])
	}
	text := args[0]
	number, isFrame := strings.CutPrefix(text, "#")
	digits, isAddress := strings.CutPrefix(text, "0x")
	switch {
	case isFrame:
		n, err := strconv.ParseUint(number, 10, 31)
		if err != nil {
			return usage("%q: expected the number of a frame after #", text)
		}
		if c.Flags().Changed("frame") {
			return usage("-f and %s cannot be combined: both select a frame", text)
		}
		q.Frame = int(n)
	case isAddress:
		n, err := strconv.ParseUint(digits, 16, 64)
		if err != nil {
			return usage("%q: expected a 64-bit hexadecimal address, such as 0x7f184e5d308b", text)
		}
		addr := machine.Addr(n)
		q.Address = &addr
	default:
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return usage("%q: expected an address (0x...), the id of a record (a decimal number) or a frame (#N)", text)
		}
		q.Record = &n
	}
	return nil
}
