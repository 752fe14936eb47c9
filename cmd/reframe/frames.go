package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/cli/flags"
	"example.com/reframe/internal/report/text"
)

func (a *app) framesCommand() *cobra.Command {
	k := inputs{goroutines: &goroutines{}}
	var depth string
	choice, hold, source, vm, registers := deopt.Choice{Frame: -1}, false, false, false, false
	c := &cobra.Command{
		Use:   "frames {PID | CORE} [--ir FILE.ll]",
		Short: "Show the abstract frames of every thread of a process or a core",
		Long: `frames stops the process for a moment, copies the registers and stacks of its threads,
resumes it, and rebuilds the frames from the copy. Nothing is written into the process. With --hold
the process stays stopped until all frames are rebuilt. That takes longer, but any memory can be read,
such as the end of a very deep stack, or a stack in several pieces.

` + positionalHelp + ` ` + coreHelp + `

` + debuggerHelp + `

A frame at a recorded site shows the values of its record. With --ir they have names and types.
With --layout the frame is shown as a frame of the function that resumes. A layout of a virtual machine
(doc/user/layouts.md) adds the machine's frames and objects below the frame that contains them; --vm shows
only these.

With debug information, a frame shows its source line and the functions that were inlined there. The
information comes from the DWARF of programs, libraries and registered objects, or else from the !dbg
metadata of the module of --ir. Files that take more than some milliseconds to read are skipped
unless --source is given.

Of a stack with more than 512 frames only the innermost and the outermost 256 are rebuilt, and a line
counts the others. --depth changes the number, and -f selects any frame. Repeated frames
without a record are folded; JSON has each.

For a Go program with DWARF, each thread names the goroutine that it runs. --goroutines also shows those
that no thread runs, with the C and JIT frames between them and the thread that they are locked to.
Their stacks are copied while the process is stopped, up to 65536 goroutines and 64 MiB. The pause grows
by about 2 ms for 1000 goroutines. The text shows equal stacks once.

Exit status: 0 OK, even if no frame has a record; 1 a recorded value or a frame is unavailable;
2 the process is unreadable, the frame does not exist, or another error.`,
		Example: `  reframe frames 41822
  reframe frames -p 41822 --ir loop.ll
  reframe frames -p 41822 --ir loop.ll --layout loop.layout.json --json
  reframe frames -p $(pidof lli) -t 41823 --function sum_opt
  reframe frames exit.core --ir loop.ll --layout loop.layout.json
  reframe frames --core exit.core --sysroot customer/ --exe build/host
  reframe frames --remote localhost:2345 --ir loop.ll`,
		Args:              onlyTarget,
		ValidArgsFunction: completeTarget,
		RunE: func(c *cobra.Command, _ []string) error {
			if k.still() && hold {
				return usage("--hold requires a process that runs: -p PID")
			}
			if k.goroutines.parked && k.thread != 0 {
				return usage("--goroutines cannot be combined with -t, which selects one thread")
			}
			if registers && !a.json {
				return usage("--registers requires --json; explain shows the registers of one frame")
			}
			k.shows = true
			var err error
			if k.depth, err = depthOf(depth, &choice); err != nil {
				return err
			}
			t, view, err := k.look(a, c, hold)
			if err != nil {
				return err
			}
			defer t.Close()
			if err := k.goroutines.describe(a, t, view); err != nil {
				return err
			}
			t.Release()
			frames, records, numbers := view.Frames(), view.Records(), view.HowMany()
			nearest := view.NearFunction(choice.Function)
			view.Keep(choice)
			costly := view.Sources(sourceBudget(source))
			if registers {
				view.ListRegisters()
			}
			if a.json {
				err = text.WriteJSON(a.stdout, view.Report())
			} else if vm {
				err = text.PrintVMStacks(text.Fold(a.stdout), a.style(), view)
			} else if err = text.PrintView(text.Fold(a.stdout), a.style(), view); err == nil {
				a.hint(c.Flags(), view)
				a.hintSource(costly)
			}
			if err != nil {
				return err
			}
			if frames > 0 && view.Frames() == 0 {
				return &status{exitFailed, noSuchFrame(choice, numbers, nearest)}
			}
			if err := a.outcome(view, frames, records); err != nil || len(k.mistakes) == 0 {
				return err
			}
			return &status{exitPartial, ""}
		},
	}
	k.addFlags(c)
	k.waitFlag(c)
	k.selfFlag(c)
	flags.Choice(c.Flags(), &choice, flags.Usage{"frame": "show only the frame with this `number`" + frameNumbers, "function": "show only frames of the function with this `NAME`, or /RE/"})
	unnumbered(c)
	c.Flags().BoolVar(&hold, "hold", false, "keep the process stopped until all frames are rebuilt")
	c.Flags().StringVar(&depth, "depth", "", "rebuild `N` frames of a deep stack, half of them from each end, or all (default 512)")
	_ = c.RegisterFlagCompletionFunc("depth", cobra.FixedCompletions([]string{"all"}, cobra.ShellCompDirectiveNoFileComp))
	sourceFlag(c, &source)
	c.Flags().BoolVar(&k.goroutines.parked, "goroutines", false, "also show the goroutines of a Go program that no thread runs")
	c.Flags().BoolVar(&vm, "vm", false, "show only the frames of the virtual machine, as a stack trace")
	c.Flags().BoolVar(&a.json, "json", false, "print one JSON object (schema "+frame.Schema+")")
	c.Flags().BoolVar(&registers, "registers", false, "with --json: list the general registers of every frame")
	return c
}

// outcome returns the exit status for frames that were printed. If none of them has a record, it prints the reason. frames and records count all
// frames, and those with a record, before the user's choice was applied.
func (a *app) outcome(v *deopt.View, frames, records int) error {
	switch {
	case frames == 0:
		return &status{exitFailed, v.WhyNone()}
	case v.Records() == 0 && records > 0:
		a.note(fmt.Sprintf("no selected frame is at a recorded site; %d of all frames are", records))
	case v.Records() == 0:
		a.note(v.WhyNone())
	}
	if v.Partial() {
		return &status{exitPartial, ""}
	}
	return nil
}

// noSuchFrame returns the message for a choice that matches no frame.
func noSuchFrame(c deopt.Choice, numbers, nearest string) string {
	switch {
	case c.Function == nil:
		return fmt.Sprintf("there is no frame %d; %s", c.Number(), numbers)
	case !c.Numbered():
		return fmt.Sprintf("no frame of %s found%s; without --function all frames are shown", c.Function.Text, nearest)
	}
	return fmt.Sprintf("frame %d is not of %s, or does not exist; %s", c.Number(), c.Function.Text, numbers)
}

// note prints a note on standard error about something that is not a failure.
func (a *app) note(message string) {
	fmt.Fprintln(text.Fold(a.stderr), "reframe: note: "+text.PrintableLines(message))
}
