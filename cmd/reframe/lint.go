package main

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"example.com/reframe/internal/cli/fold"
	"example.com/reframe/internal/static/lint"
)

func (a *app) lintCommand() *cobra.Command {
	var k inputs
	c := &cobra.Command{
		Use:   "lint MODULE.ll...",
		Short: "Find exits that could not be resumed, before anything runs",
		Long: `lint looks at each stackmap, patchpoint, statepoint, deoptimize call and guard of a
module, as it is given to the code generator, and says why a frame that stands there
could not be resumed:

  unrecorded         a value that is needed to resume is not among the operands; with
                     --layout, what the block needs in which an exit resumes
  gc-live            it is in the gc-live bundle alone, among others
  lost-operand       LLVM records nothing of an operand, or a part: x86_fp80, aggregates
  undefined-operand  an operand is undef or poison
  clobbered-operand  a layout needs what the callee of a patchpoint may overwrite
  wide-vector        an operand needs AVX or AVX-512
  x87-operand        an operand has no location if llc keeps it in an x87 register
  not-compiled       the code generator crashes, such as over an i128 of a stackmap
  no-record          the site is dropped
  same-id            another site has its id, and nothing else tells them apart
  wide-id            a statepoint's id has more bits than LLVM before 19 keeps
  behind-call        a frame in the call before a stackmap has no record of that
  patch-bytes        a call does not fit into the bytes that may be patched
  layout             a layout names what is not there, or is of another type
  swapped            a layout gives an operand under the name of another operand
  no-layout          nothing says where a deoptimize resumes
  vm-layout          a layout of a virtual machine does not read the operands, or takes one
                     for what it cannot be
  unknown-word       a calling convention, attribute, flag or the like that is none of
                     LLVM's: a fork's, or a later release's

What it says of the code generator was seen with LLVM 14 to 22. A warning depends on what
the module does not show: how it is inlined, patched, or which flags compile it.

Exit status: 0 no site is known that cannot be resumed (there may be warnings), 1 there
are such sites, 2 it failed.`,
		Example: `  reframe lint loop.ll
  reframe lint loop.ll --layout loop.layout.json
  reframe lint vm.ll --layout simple
  reframe lint loop.ll --json
  reframe lint optimized.ll baseline.ll --layout loop.layout.json`,
		Args: needs("MODULE.ll"),
		RunE: func(_ *cobra.Command, args []string) error {
			k.Modules = args
			return a.lint(&k)
		},
		ValidArgsFunction: cobra.FixedCompletions([]string{"ll"}, cobra.ShellCompDirectiveFilterFileExt),
	}
	f := c.Flags()
	k.AddLayouts(f, inputUsage)
	f.BoolVar(&a.json, "json", false, "print one JSON object (schema "+lint.Schema+")")
	completeInputs(c)
	return c
}

func (a *app) lint(k *inputs) error {
	k.apart = true
	o, err := k.options(nil) // unknown words are among the findings
	if err != nil {
		return err
	}
	report, err := lint.Lint(o.Modules, o.Layouts, o.VMs...)
	if err != nil {
		return err
	}
	if a.json {
		err = writeJSON(a.stdout, report)
	} else {
		err = a.printLint(report)
	}
	if err == nil && report.Count(lint.CannotResume) > 0 {
		err = &status{code: exitPartial} // each was printed
	}
	return err
}

// printLint prints one line for each finding, and the counts on standard error.
func (a *app) printLint(r *lint.Report) error {
	out, s := bufio.NewWriter(fold.To(a.stdout)), a.style()
	for n := range r.Findings {
		printFinding(out, s, &r.Findings[n])
	}
	if err := out.Flush(); err != nil {
		return err
	}
	modules := printable(strings.Join(r.Modules, ", "))
	if r.Sites == 0 {
		fmt.Fprintf(fold.To(a.stderr), "%s: no stackmap, patchpoint, statepoint, deoptimize or guard\n", modules)
		return nil
	}
	fmt.Fprintf(fold.To(a.stderr), "%s: %s, %d × cannot resume, %s\n", modules, count(r.Sites, "site"),
		r.Count(lint.CannotResume), count(r.Count(lint.LintWarning), "warning"))
	return nil
}

func printFinding(out *bufio.Writer, s style, f *lint.Finding) {
	place := f.File
	if f.Line > 0 {
		place = fmt.Sprintf("%s:%d", place, f.Line)
	}
	if f.Path != "" {
		place += ": " + f.Path
	}
	severity := string(f.Severity)
	if f.Severity == lint.CannotResume {
		severity = s.yellow(severity)
	} else {
		severity = s.dim(severity)
	}
	fmt.Fprintf(out, "%s: %s: ", s.bold(printable(place)), severity)
	if f.Site != "" {
		id := ""
		if f.ID != nil {
			id = fmt.Sprintf(" %d", *f.ID)
		}
		fmt.Fprintf(out, "%s%s of @%s, block %%%s: ", f.Site, id, printable(f.Function), printable(f.Block))
	}
	fmt.Fprintf(out, "%s; %s %s\n", printable(f.What), printable(f.Do), s.dim("["+string(f.Rule)+"]"))
}
