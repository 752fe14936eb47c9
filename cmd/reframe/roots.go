package main

import (
	"github.com/spf13/cobra"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/check/roots"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/report/text"
)

func (a *app) rootsCommand() *cobra.Command {
	var k inputs
	var heap, from []string
	var count bool
	var o roots.Options
	c := &cobra.Command{
		Use:   "roots {PID | CORE} [--ir FILE.ll]",
		Short: "Show the garbage collector's roots in every frame",
		Long: `roots lists what the records of statepoints tell a garbage collector, frame by frame: each pointer
that the collector must update, with its location and its value, and for a derived pointer its base and
the distance from it. Stack objects (allocas) whose content the collector reads are listed by their
address. With --ir the pointers have names and types; where the record does not distinguish some of
them, the line lists the names that are possible.

Frames without a map between frames with one are listed too: a collector that walks the stack must pass
them, and finds no roots in them.

--heap checks where the base of each root points. Several ranges may be given, such as those of static
objects. --from-space names parts that the collector has left: a root there is stale.

` + positionalHelp + ` ` + coreHelp + `

` + debuggerHelp + `

Exit status: 0 OK, 1 a root is unavailable, unknown or outside of the heap, or a stack is incomplete,
2 no frame is at a statepoint, or another error.`,
		Example: `  reframe roots 41822
  reframe roots -p 41822 --ir program.ll
  reframe roots -p 41822 --heap 7f1200000000-7f1210000000
  reframe roots exit.core --ir program.ll --json
  reframe roots -p 41822 --count`,
		Args:              onlyTarget,
		ValidArgsFunction: completeTarget,
		RunE: func(c *cobra.Command, _ []string) error {
			if count && a.json {
				return usage("--count and --json cannot be combined: JSON has each root")
			}
			var err error
			if o.Heap.Ranges, err = rangesOf("--heap", heap); err != nil {
				return err
			}
			if o.Heap.FromSpace, err = rangesOf("--from-space", from); err != nil {
				return err
			}
			t, view, err := k.look(a, c, false)
			if err != nil {
				return err
			}
			defer t.Close()
			t.Release()
			r := roots.New(view, o)
			switch {
			case a.json:
				err = text.WriteJSON(a.stdout, r)
			case count:
				err = text.PrintRootCounts(text.Fold(a.stdout), a.style(), view, r)
			default:
				err = text.PrintRoots(text.Fold(a.stdout), a.style(), view, r)
			}
			return rootsOutcome(err, view, r, o.Function)
		},
	}
	k.addFlags(c)
	k.waitFlag(c)
	k.selfFlag(c)
	c.Flags().Var(names.Into(&o.Function, names.Exact), "function", "list only frames of the function with this `NAME`, or /RE/")
	c.Flags().StringArrayVar(&heap, "heap", nil, "check that the base of each root is in `START-END`, in hexadecimal (repeatable)")
	c.Flags().StringArrayVar(&from, "from-space", nil, "report roots whose base is in `START-END` (repeatable)")
	c.Flags().BoolVar(&count, "count", false, "print only the number of frames and roots of each function")
	c.Flags().BoolVar(&a.json, "json", false, "print one JSON object (schema "+roots.Schema+")")
	return c
}

// rangesOf parses the values of a flag.
func rangesOf(flag string, list []string) (all []roots.Range, err error) {
	for _, text := range list {
		r, err := roots.ParseRange(text)
		if err != nil {
			return nil, usage("%s %v", flag, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// rootsOutcome returns the exit status of a report that was printed.
func rootsOutcome(err error, v *deopt.View, r *roots.Report, function *names.Pattern) error {
	switch sum := &r.Summary; {
	case err != nil:
		return err
	case sum.Frames == 0 && function != nil && v.Frames() > 0:
		return &status{exitFailed, "no frame of " + function.Text + " is at a statepoint" + v.NearFunction(function)}
	case sum.Frames == 0 && sum.Unknown > 0:
		return &status{exitFailed, "no frame is certainly at a statepoint: only the module (--ir) shows the kind of site of its record"}
	case sum.Frames == 0 && v.Records() > 0:
		return &status{exitFailed, "no frame is at a statepoint: the records of stackmaps and patchpoints list no roots"}
	case sum.Frames == 0:
		return &status{exitFailed, v.WhyNone()}
	case sum.Unavailable > 0 || sum.Wrong > 0 || sum.Unknown > 0 || sum.Incomplete > 0:
		return &status{exitPartial, ""}
	}
	return nil
}
