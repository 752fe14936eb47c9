package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/report/text"
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
		Short: "Add stackmaps that record all live values to a module",
		Long: `instrument adds stackmaps to a module that record all values which are live at their place.
Compile the new module instead of the original: it behaves the same, and a frame at one
of these sites has all values by name, and can be resumed, traced and verified. --at selects places:

  blocks  at the start of each block: after its phis and landing pad, in the entry block
          after its allocas
  calls   after each call of a function; for an invoke, where it continues normally
  sites   before each existing stackmap, patchpoint, statepoint, deoptimize and guard, which
          may record only a part of the live values

The module's text is edited: existing text stays byte for byte. Instrument the module that the code
generator gets, after all optimizations: later optimizations are limited by its
sites. Ids are counted from --id on, skipping those that the module has.

Of a struct or array the elements are recorded. For LLVM 14, which records only values of register
types, an i1 is extended. Both need instructions, right after that of the value.
--llvm is the earliest release that must compile the new module.
A value is left out if no register holds its type, or if the code generator of a
release crashes on it. Frames at that site have all other values, and cannot be resumed;
--complete leaves out the site instead.
At -O0 each value of a stackmap takes a register, and the code generator fails if there are too many;
--most 8 leaves out sites with more values, not counting those in the frame (alloca).
Naked functions and functions with funclets are skipped, and so are places where a site would
disturb an existing one. The summary counts each kind and names the first of each.

Exit status: 0 the module was written, even if values or sites were left out, 2 no place for a site, or error.`,
		Example: `  reframe instrument loop.ll -o probed.ll
  reframe instrument loop.ll -o probed.ll --at blocks,calls --function '^f'
  reframe instrument loop.ll --at sites --id 5000 --complete -o probed.ll
  reframe instrument loop.ll | llc-19 -filetype=obj -relocation-model=pic -o loop.o`,
		Args: needs("MODULE.ll"),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("expected one module, got also %s", args[1])
			}
			o := &k.options
			for _, place := range k.at {
				if !slices.Contains(instrumentPlaces, place) {
					return usage("--at %s: expected %s", place, strings.Join(instrumentPlaces, ", "))
				}
			}
			o.Blocks, o.Calls, o.Sites = slices.Contains(k.at, "blocks"), slices.Contains(k.at, "calls"), slices.Contains(k.at, "sites")
			switch {
			case len(k.at) == 0:
				return usage("--at: expected one or more of %s", strings.Join(instrumentPlaces, ", "))
			case o.First == 0:
				return usage("--id 0: must be 1 or more")
			case c.Flags().Changed("llvm") && (o.Release < 14 || o.Release > 22):
				return usage("--llvm %d: must be a release from 14 to 22", o.Release)
			case o.Most < 0 || c.Flags().Changed("most") && o.Most == 0:
				return usage("--most %d: must be above 0", o.Most)
			case k.output == "":
				return usage("-o requires the name of a file")
			}
			if err := refuseLoss(k.force, []named{{"-o", k.output}}, []named{{"instrument", args[0]}}); err != nil {
				return err
			}
			return a.instrument(args[0], &k)
		},
		ValidArgsFunction: cobra.FixedCompletions([]string{"ll", "bc"}, cobra.ShellCompDirectiveFilterFileExt),
	}
	f := c.Flags()
	f.StringVarP(&k.output, "output", "o", standard, "write the module to `FILE`, or to standard output (-)")
	f.StringSliceVar(&k.at, "at", []string{"blocks"}, "add sites at `WHERE`: blocks, calls, sites, or several with commas")
	f.Var(names.Into(&k.options.Function, names.Loose), "function", "change only functions with this `NAME`, a name or a regular expression")
	f.Uint64Var(&k.options.First, "id", 1, "number the sites from `N` on")
	f.IntVar(&k.options.Release, "llvm", 0, "the earliest LLVM release `N` that compiles the result (default 16; 14 with typed pointers)")
	f.IntVar(&k.options.Most, "most", 0, "leave out sites with more than `N` values (default: no limit)")
	f.BoolVar(&k.options.Complete, "complete", false, "leave out sites that would lack a value")
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
	if len(r.Sites) > 0 {
		if err := a.writeFile(k.output, k.force, 0o644, func(w io.Writer) error { _, err := io.WriteString(w, r.Text); return err }); err != nil {
			return err
		}
	}
	text.PrintInstrumented(text.Fold(a.stderr), path, r)
	switch {
	case len(r.Sites) > 0:
		return nil
	case k.options.Function != nil:
		return fmt.Errorf("%s: no place for a site in the functions of --function %s", path, k.options.Function.Text)
	}
	return fmt.Errorf("%s: no place for a site", path)
}
