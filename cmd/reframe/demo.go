package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/demo"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/report/text"
	"example.com/reframe/internal/vm/described"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/ptrace"
)

func (a *app) demoCommand() *cobra.Command {
	keep := false
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show the main features on a built-in program",
		Long: `demo runs a small built-in program. The program maps code that LLVM compiled and registers
it with the GDB JIT interface, as a JIT does. Its guard fails, which is an OSR exit. demo shows the
frames, resumes the frame at the exit in the reference interpreter, lets the native code
continue, and compares the results. Then it shows the frames of a virtual machine, whose
code contains its own IR and layout. demo needs no LLVM.

With --keep it leaves two processes waiting at these exits, with their IR and layout
beside them, and prints commands to try. The processes end on request, or after an hour.

Exit status: 0 the results agree, 2 error, 3 the interpreter and the native code disagree.`,
		Example: "  reframe demo\n  reframe demo --keep",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
			defer cancel()
			if keep {
				return a.demoKept(ctx)
			}
			return a.demo(ctx)
		},
	}
	c.Flags().BoolVar(&keep, "keep", false, "keep the processes waiting, with their files beside them")
	return c
}

// demoKept leaves a target running and prints commands to try on it.
func (a *app) demoKept(ctx context.Context) error {
	kept, err := demo.Keep(ctx)
	if err != nil {
		return err
	}
	pid := []string{"-p", strconv.Itoa(kept.PID)}
	files := []string{"--ir", demo.KeptIR, "--layout", demo.KeptLayout}
	fmt.Fprintf(a.stdout, `started a program, process %d; its guard has failed, and it waits at an OSR exit
its IR, its layout and the program itself are in %s
started another, process %d, waiting at an exit of a virtual machine's method; it contains its own IR and layout

try:
  cd %[2]s
`, kept.PID, quoted(kept.Dir), kept.VM)
	for _, words := range [][]string{
		slices.Concat([]string{"frames"}, pid),
		slices.Concat([]string{"frames"}, pid, files),
		slices.Concat([]string{"explain"}, pid, files, []string{"#1"}),
		slices.Concat([]string{"resume"}, pid, files),
		slices.Concat([]string{"resume"}, pid, files, []string{"--commit", "--dry-run"}),
		slices.Concat([]string{"record"}, pid, files, []string{"-o", "exit.core"}),
		slices.Concat([]string{"resume", "--core", "exit.core"}, files),
		{"frames", "-p", strconv.Itoa(kept.VM)},
		{"frames", "-p", strconv.Itoa(kept.VM), "--vm"},
	} {
		fmt.Fprintf(a.stdout, "  %s\n", commandLine(words...))
	}
	fmt.Fprintf(a.stdout, `
end the processes (they end by themselves after an hour):
  echo > %-13s # the first continues from its exit, ends, and writes the sum to %s
  echo > %-13s # the other one ends
  kill %-15s # or end both at once
  rm -r %s
`, demo.KeptGo, demo.KeptOutput, demo.KeptVMGo, fmt.Sprintf("%d %d ", kept.PID, kept.VM), quoted(kept.Dir))
	return nil
}

func (a *app) demo(ctx context.Context) error {
	module, err := ir.Parse("target.ll", demo.IR)
	if err != nil {
		return err
	}
	described, err := layout.Parse("target.layout.json", demo.Layout)
	if err != nil {
		return err
	}
	options := deopt.Options{Modules: []*ir.Module{module}, Layouts: []*layout.Layout{described}}

	process, err := demo.Start()
	if err != nil {
		return err
	}
	defer process.Kill()
	fmt.Fprintf(a.stdout, "started a program, process %d; its guard has failed, and it waits at an OSR exit\n\n", process.PID)

	if err := a.demoFrames(process.PID, options); err != nil {
		return err
	}
	target, view, err := capture(process.PID, ptrace.Options{Hold: true}, options)
	if err != nil {
		return err
	}
	defer target.Close()
	stack, err := view.Pick(deopt.Choice{Frame: -1})
	if err != nil {
		return err
	}
	thread, exit := stack.Thread, stack.Frames[0]
	resumed, err := view.Run(ctx, stack, deopt.Limits{})
	if err != nil {
		return err
	}
	target.Release()
	fmt.Fprintf(a.stdout, "\nthe reference interpreter resumes from frame #%d and returns %s %s after %s\n",
		exit.Index, resumed.Result.Type, resumed.Result.Value, text.Count(int(resumed.Steps), "instruction"))

	native, err := a.native(ctx, process, view, thread, exit, resumed.Result.Type)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "the native code runs on and returns to %s with %s\n", native.where, native.value)
	if native.value != resumed.Result.Value {
		return &status{exitDisagree, fmt.Sprintf("they disagree: interpreter %s, native code %s", resumed.Result.Value, native.value)}
	}
	fmt.Fprintln(a.stdout, "they agree")
	return a.demoVM()
}

// demoVM shows frames of a virtual machine. From the output of `reframe frames` it prints only the frame that contains them, without the operands of
// its record, because the VM frames show these in their own terms.
func (a *app) demoVM() error {
	process, err := demo.StartVM()
	if err != nil {
		return err
	}
	defer process.Kill()
	t, err := ptrace.Capture(process.PID, ptrace.Options{Hold: true}) // layouts follow pointers
	if err != nil {
		return err
	}
	defer t.Close()
	var o deopt.Options
	group, err := newGroup()
	if err != nil {
		return err
	}
	said, notes := take(described.Of(t, true, true), group, &o)
	view, err := deopt.Frames(t, o)
	if err != nil {
		return err
	}
	w := text.Fold(a.stdout)
	fmt.Fprintf(w, "\nstarted another, process %d, at an exit of a virtual machine's method; it contains its own description: %s\n", process.PID, said)
	for _, note := range notes {
		fmt.Fprintln(w, text.Printable(note))
	}
	stack, err := view.Pick(deopt.Choice{Frame: -1})
	if err != nil {
		return err
	}
	exit := stack.Frames[0].Frame
	if exit.VM == nil || exit.VM.Error != "" {
		return fmt.Errorf("demo: frame #%d: the frames of the virtual machine cannot be read", exit.Index)
	}
	exit.Slots = nil
	text.PrintFrame(w, a.style(), &exit)
	return nil
}

// demoFrames prints what `reframe frames` prints.
func (a *app) demoFrames(pid int, o deopt.Options) error {
	target, view, err := capture(pid, ptrace.Options{}, o)
	if err != nil {
		return err
	}
	defer target.Close()
	return text.PrintView(text.Fold(a.stdout), a.style(), view)
}

// returned is the result of a function in native code, and the function to which it returned.
type returned struct{ where, value string }

// native lets the target run until the frame's function returns, and reads the result there.
func (a *app) native(ctx context.Context, p *demo.Process, v *deopt.View, t *deopt.Thread, f *deopt.Frame, typ string) (returned, error) {
	caller := v.Caller(t, f)
	if caller == nil {
		return returned{}, fmt.Errorf("frame #%d has no caller", f.Index)
	}
	session, err := ptrace.Open(ctx, p.PID)
	if err != nil {
		return returned{}, err
	}
	defer session.Detach() // has no effect after an earlier Detach; the target ends with this process
	if err := p.Wake(); err != nil {
		return returned{}, err
	}
	stopped, err := session.RunTo(ctx, caller.Address())
	if err != nil {
		return returned{}, err
	}
	raw, err := deopt.ReturnValue(stopped.Registers)
	if err != nil {
		return returned{}, err
	}
	if err := session.Detach(); err != nil {
		return returned{}, err
	}
	if _, err := p.Result(); err != nil {
		return returned{}, err
	}
	value := frame.Type{Kind: frame.Int, Bits: 64, Source: typ}.Format(raw, stopped.Registers.Arch().Order)
	return returned{text.Place(&caller.Frame), value}, nil
}
