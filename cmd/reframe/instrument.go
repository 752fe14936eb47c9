package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"example.com/reframe/internal/cli/fold"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/static/instrument"
)

// instrumented holds the flags of instrument.
type instrumented struct {
	options instrument.Options
	at      []string
	output  string
	force   bool
}

// instrumentPlaces lists the values of --at.
var instrumentPlaces = []string{"blocks", "calls", "sites"}

func (a *app) instrumentCommand() *cobra.Command {
	var k instrumented
	c := &cobra.Command{
		Use:   "instrument MODULE.ll [-o FILE.ll]",
		Short: "Write stackmaps with all live values into a module",
		Long: `instrument writes a module anew with stackmaps that have all values which are live where they
stand. Compiled in the place of the module it does the same, and each frame that stands at one
of these sites has all values by name, and can be resumed, traced and verified:

  blocks  at the start of each block: behind its phis and landing pad, in the first block of a
          function behind its allocas
  calls   behind each call of a function; behind an invoke, where it goes on
  sites   before each stackmap, patchpoint, statepoint, deoptimize and guard that is there, whose
          values may be a part of those that are live

The module's text is edited: what it has stays byte for byte. It is for a module as the code
generator gets it, behind all optimizations; one that is optimized afterwards is so around its
sites. Ids are counted from --id on, without those that the module has.

Of a struct or array the elements are recorded, and for LLVM 14, which takes types of registers
alone, of an i1 what extends it: by instructions of their own, right behind that of the value.
--llvm says which is the earliest release that is to compile it.
A value that a record cannot have is left out: of a type that no register holds, or over which the
code generator of a release crashes.
Frames at that site have all others, and cannot be resumed; --complete leaves out the site instead.
At -O0 each value of a stackmap takes a register, and where there are more the code generator stops;
--most 8 leaves out sites with more values, not counting what lies in the frame (alloca).
Functions that are naked or have funclets keep out, and so do places where a site would be in the
way of one that is there. How many there are of each, and where the first one is, is said.

Exit status: 0 it was written, whatever was left out, 2 it failed, or there was no place for a site.`,
		Example: `  reframe instrument loop.ll -o probed.ll
  reframe instrument loop.ll -o probed.ll --at blocks,calls --function '^f'
  reframe instrument loop.ll --at sites --id 5000 --complete -o probed.ll
  reframe instrument loop.ll | llc-19 -filetype=obj -relocation-model=pic -o loop.o`,
		Args: needs("MODULE.ll"),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("one module at a time, not %s too", args[1])
			}
			o := &k.options
			for _, place := range k.at {
				if !slices.Contains(instrumentPlaces, place) {
					return usage("--at %s: %s", place, strings.Join(instrumentPlaces, ", "))
				}
			}
			o.Blocks, o.Calls, o.Sites = slices.Contains(k.at, "blocks"), slices.Contains(k.at, "calls"), slices.Contains(k.at, "sites")
			switch {
			case len(k.at) == 0:
				return usage("--at: one or more of %s", strings.Join(instrumentPlaces, ", "))
			case o.First == 0:
				return usage("--id 0: 1 or more")
			case c.Flags().Changed("llvm") && (o.Release < 14 || o.Release > 22):
				return usage("--llvm %d: a release from 14 to 22", o.Release)
			case o.Most < 0 || c.Flags().Changed("most") && o.Most == 0:
				return usage("--most %d: a number above 0", o.Most)
			case k.output == "":
				return usage("the name behind -o is empty")
			}
			if err := refuseLoss(k.force, []named{{"-o", k.output}}, []named{{"instrument", args[0]}}); err != nil {
				return err
			}
			return a.instrument(args[0], &k)
		},
		ValidArgsFunction: cobra.FixedCompletions([]string{"ll", "bc"}, cobra.ShellCompDirectiveFilterFileExt),
	}
	f := c.Flags()
	f.StringVarP(&k.output, "output", "o", standard, "write the module to `FILE`; - is standard output")
	f.StringSliceVar(&k.at, "at", []string{"blocks"}, "`WHERE`: blocks, calls, sites, or several with commas")
	f.Var(names.Into(&k.options.Function, names.Loose), "function", "only in functions of this `NAME`, or that a regular expression matches")
	f.Uint64Var(&k.options.First, "id", 1, "the first site has the id `N`, the others those that follow")
	f.IntVar(&k.options.Release, "llvm", 0, "the earliest release `N` of LLVM that compiles it (default 16; of typed pointers 14)")
	f.IntVar(&k.options.Most, "most", 0, "leave out a site with more than `N` values (default: no site is)")
	f.BoolVar(&k.options.Complete, "complete", false, "leave out a site that would lack a value")
	forceFlag(c, &k.force)
	_ = c.RegisterFlagCompletionFunc("at", cobra.FixedCompletions(instrumentPlaces, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"ll"}, cobra.ShellCompDirectiveFilterFileExt))
	return c
}

func (a *app) instrument(path string, k *instrumented) error {
	m, err := ir.ParseFile(path)
	if err != nil {
		return err
	}
	a.modules = append(a.modules, m)
	r, err := instrument.Module(m, k.options)
	if err != nil {
		return err
	}
	words := fold.To(a.stderr)
	if len(r.Sites) > 0 {
		if err := a.writeFile(k.output, k.force, 0o644, func(w io.Writer) error { _, err := io.WriteString(w, r.Text); return err }); err != nil {
			return err
		}
		fmt.Fprintf(words, "%s: %s in %s, ids %d to %d, %s\n", printable(path), count(len(r.Sites), "site"), count(r.Functions(), "function"),
			r.Sites[0].ID, r.Sites[len(r.Sites)-1].ID, count(r.Values, "value"))
		if n := r.Lacking(); n > 0 {
			fmt.Fprintf(words, "%s without a value that is live there: a frame at one cannot be resumed\n", count(n, "site"))
		}
	}
	for _, l := range r.Left {
		fmt.Fprintf(words, "left out: %s, %s; the first: %s\n", count(l.Count, l.What), printable(l.Why), printable(l.First))
	}
	switch {
	case len(r.Sites) > 0:
		return nil
	case k.options.Function != nil:
		return fmt.Errorf("%s: no place for a site in the functions of --function %s", path, k.options.Function.Text)
	}
	return fmt.Errorf("%s: no place for a site", path)
}
