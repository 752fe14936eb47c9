package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"example.com/reframe/internal/report/text"
	"example.com/reframe/internal/static/gclint"
	"example.com/reframe/internal/static/lint"
)

func (a *app) lintCommand() *cobra.Command {
	var k inputs
	var g gcLint
	c := &cobra.Command{
		Use:   "lint MODULE.ll...",
		Short: "Find exits of a module that could not be resumed",
		Long: `lint checks each stackmap, patchpoint, statepoint, deoptimize call and guard of a module, as
the code generator gets it, and reports why a frame at that site could not be resumed:

  unrecorded         a value that is needed to resume is not an operand; with --layout, a value
                     that the block needs in which an exit resumes
  gc-live            a needed value is only in the gc-live bundle, among others
  lost-operand       LLVM records none or only a part of an operand: x86_fp80, aggregates
  undefined-operand  an operand is undef or poison
  clobbered-operand  a layout needs a value that the callee of a patchpoint may overwrite
  wide-vector        an operand needs AVX or AVX-512
  x87-operand        an operand has no location if llc keeps it in an x87 register
  not-compiled       the code generator crashes, for example on an i128 of a stackmap
  no-record          the code generator drops the site
  same-id            another site has the same id, and nothing else distinguishes them
  wide-id            a statepoint's id has more bits than LLVM before 19 keeps
  behind-call        a frame that waits in the call before a stackmap has no record
  patch-bytes        a call does not fit into the bytes that may be patched
  layout             a layout names something that does not exist, or has another type
  swapped            a layout gives an operand the name of another operand
  no-layout          neither a layout nor the site tells where a deoptimize resumes
  vm-layout          a layout of a virtual machine cannot read the operands, or interprets
                     one in an impossible way
  unknown-word       a calling convention, attribute, flag or similar word that LLVM does not
                     have: from a fork or a later release

The facts about the code generator were observed with LLVM 14 to 22. A warning depends on
facts outside of the module: inlining, patching, or the flags of the compilation.

With --gc, lint checks the references of a precise garbage collector instead, before or after
the pass rewrite-statepoints-for-gc:

  stale-use     a pointer is used after a safepoint that did not relocate it
  stale-copy    a copy of an address, such as the result of ptrtoint, is used after a safepoint
  stale-slot    an alloca that no bundle lists holds an address from before a safepoint
  own-base      a derived pointer is relocated as its own base
  wrong-base    a derived pointer is relocated with another pointer's base
  leaf          "gc-leaf-function" on a function that can collect
  no-safepoint  in a rewritten function, a call that can collect is not a statepoint

Each finding is certain (on each path), likely (on a path of the control flow, or unless two
values are equal) or possible (depends on facts outside of the IR). Managed pointers have address
space 1 with gc "statepoint-example" and "coreclr"; --gc-pointers gives those of others.

Exit status: 0 no errors found (warnings are possible), 1 a site cannot be resumed, or with --gc
a finding is certain or likely or a function was not checked, 2 error.`,
		Example: `  reframe lint loop.ll
  reframe lint loop.ll --layout loop.layout.json
  reframe lint vm.ll --layout simple
  reframe lint loop.ll --json
  reframe lint optimized.ll baseline.ll --layout loop.layout.json
  reframe lint --gc rewritten.ll --gc-pointers mygc:addrspace=1`,
		Args: needs("MODULE.ll"),
		RunE: func(_ *cobra.Command, args []string) error {
			k.Modules = args
			switch {
			case g.on && len(k.Layouts) > 0:
				return usage("--gc cannot be combined with --layout")
			case g.on:
				return a.gcLint(&k, g.pointers)
			case len(g.pointers) > 0:
				return usage("--gc-pointers requires --gc")
			}
			return a.lint(&k)
		},
		ValidArgsFunction: cobra.FixedCompletions([]string{"ll"}, cobra.ShellCompDirectiveFilterFileExt),
	}
	f := c.Flags()
	k.AddLayouts(f, inputUsage)
	f.BoolVar(&g.on, "gc", false, "check the references of a garbage collector")
	f.StringArrayVar(&g.pointers, "gc-pointers", nil, "with --gc: pointers of a collector, [NAME:]addrspace=N[,N...]")
	f.BoolVar(&a.json, "json", false, "print one JSON object (schema "+lint.Schema+", with --gc "+gclint.Schema+")")
	completeInputs(c)
	return c
}

func (a *app) lint(k *inputs) error {
	k.apart = true
	o, err := k.options(nil) // unknown words are among the findings
	if err != nil {
		return err
	}
	a.showPrints(o.VMs)
	report, err := lint.Lint(o.Modules, o.Layouts, o.VMs...)
	if err != nil {
		return err
	}
	if a.json {
		err = text.WriteJSON(a.stdout, report)
	} else {
		if err = text.PrintLint(text.Fold(a.stdout), a.style(), report); err == nil {
			fmt.Fprint(text.Fold(a.stderr), text.LintSummary(report))
		}
	}
	if err == nil && report.Count(lint.CannotResume) > 0 {
		err = &status{code: exitPartial} // each finding was printed
	}
	return err
}

// gcLint holds the flags of lint --gc.
type gcLint struct {
	on       bool
	pointers []string
}

func (a *app) gcLint(k *inputs, pointers []string) error {
	var collectors gclint.Collectors
	for _, p := range pointers {
		if err := collectors.Set(p); err != nil {
			return usage("--gc-pointers: %v", err)
		}
	}
	k.apart = true
	o, err := k.options(nil)
	if err != nil {
		return err
	}
	if unused := collectors.Unused(o.Modules); len(unused) > 0 {
		return fmt.Errorf("--gc-pointers: no function has gc %q", unused[0])
	}
	report, err := gclint.Check(o.Modules, &collectors)
	if err != nil {
		return err
	}
	if a.json {
		err = text.WriteJSON(a.stdout, report)
	} else {
		if err = text.PrintGCLint(text.Fold(a.stdout), a.style(), report); err == nil {
			fmt.Fprint(text.Fold(a.stderr), text.GCLintSummary(report))
		}
	}
	if err == nil && report.Count(gclint.Certain)+report.Count(gclint.Likely)+len(report.Unknown) > 0 {
		err = &status{code: exitPartial} // each finding of lint --gc was printed, and each collector whose functions were not checked
	}
	return err
}
