package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/progspace"
	"example.com/reframe/internal/report/text"
	"example.com/reframe/internal/static/maps"
	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/ptrace"
	"example.com/reframe/replay"
)

// mapsFlags holds the flags of maps.
type mapsFlags struct {
	inputs   inputs
	dialect  string
	arch     string
	format   string
	check    bool
	require  bool
	function *names.Pattern
	records  []string
	address  string
	vms      []*vmlayout.Layout
}

func (a *app) mapsCommand() *cobra.Command {
	var f mapsFlags
	c := &cobra.Command{
		Use:   "maps {FILE | PID | CORE}",
		Short: "Print and check the stack map records of a file, a process or a core",
		Long: `maps prints every stack map record of a file: an ELF, Mach-O or COFF executable,
shared object or unlinked object, an archive of them, or the raw bytes of a section.
For a process or a core it prints the records of its modules and of the objects that its JIT
registered. If nothing is registered, it searches the memory for stack maps. The process
keeps running while it is read.

A record does not contain the kind of its site. With --ir, the compiled module, the kind is
known and locations have names. Without it, a record in the form of a statepoint's is
shown as a statepoint, and marked as an interpretation.

With --layout, maps shows the frames of the virtual machine that the layout makes of each record:
methods, positions, and the operand from which each local, stack entry and monitor is read.

--check checks the rules that stack maps keep, and shows the fact behind each broken rule; with
--ir it also compares them with the sites of the module. A rule with "-" had nothing to check,
or shows why it was not checked.

Exit status: 0 OK, even without a stack map; 1 no record matches the filters, some but not all
maps are unreadable, --check found a broken rule, or --require found no stack map; 2 error.`,
		Example: `  reframe maps loop.o
  reframe maps libjit.a --function 'sum.*' --json
  reframe maps 41822 --address 0x7f184e5d308b
  reframe maps loop.o --ir loop.ll --check
  reframe maps vm.o --ir vm.ll --layout vm.star
  reframe maps vm.o --check --layout simple
  reframe maps section.bin --arch s390x
  diff <(llvm-readobj --stackmap loop.o | sed '1,/^LoadName/d') <(reframe maps --format=llvm loop.o)`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 && len(kindsGiven(c)) == 0 {
				is, err := replay.IsCore(args[0])
				if isNumber(args[0]) || err == nil && is {
					if err := setTarget(c, args[0]); err != nil {
						return err
					}
					args = nil
				}
			}
			return a.maps(c, args, &f)
		},
		ValidArgsFunction: completeTarget,
	}
	flags := c.Flags()
	flags.IntVarP(&f.inputs.pid, "pid", "p", 0, "the process to inspect")
	f.inputs.coreFlags(c)
	f.inputs.debuggerFlags(c)
	f.inputs.waitFlag(c)
	f.inputs.objectFlag(c)
	f.inputs.AddModules(flags, inputUsage)
	flags.StringArrayVar(&f.inputs.Layouts, "layout", nil, "show the virtual machine's frames of each record by this layout, `FILE.star` or a builtin name; with --check: check that it reads every record (repeatable)")
	flags.BoolVar(&a.json, "json", false, "print one JSON object (schema "+maps.Schema+", with --check "+maps.CheckSchema+")")
	flags.StringVar(&f.format, "format", "text", "text, or llvm for the format of llvm-readobj --stackmap, with all maps of a section")
	flags.BoolVar(&f.check, "check", false, "check the rules that stack maps must keep")
	flags.BoolVar(&f.require, "require", false, "fail if there is no stack map")
	flags.Var(names.Into(&f.function, names.Whole), "function", "show only functions with this `NAME`, a name or a regular expression for the whole name")
	flags.StringArrayVar(&f.records, "record", nil, "show only records with this `ID` (repeatable)")
	flags.StringVar(&f.address, "address", "", "show only records whose site is at `ADDR`")
	flags.StringVar(&f.dialect, "dialect", "", "read the section in this `LAYOUT` instead of detecting it: "+dialects())
	flags.StringVar(&f.arch, "arch", "", "the `ARCHITECTURE` of the raw bytes of a section: "+archs())
	_ = c.RegisterFlagCompletionFunc("pid", completePID)
	completeInputs(c)
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "llvm"}, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("dialect", cobra.FixedCompletions(strings.Split(dialects(), ", "), cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("arch", cobra.FixedCompletions(strings.Split(archs(), ", "), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func dialects() string {
	var names []string
	for _, d := range stackmap.Dialects() {
		names = append(names, string(d))
	}
	return strings.Join(names, ", ")
}

func archs() string {
	var names []string
	for _, a := range machine.Archs() {
		names = append(names, a.Name)
	}
	return strings.Join(names, ", ")
}

func (a *app) maps(c *cobra.Command, args []string, f *mapsFlags) error {
	o, want, err := f.options(a, c, args)
	if err != nil {
		return err
	}
	// No process is stopped, and the output may be long.
	collecting(400)
	runtime.GOMAXPROCS(runtime.NumCPU())
	maps, release, err := f.open(c.Context(), args, o)
	if errors.Is(err, progspace.ErrNoMaps) {
		return a.noMaps(maps, f, want, err)
	}
	if err != nil {
		return err
	}
	defer release()
	if f.check {
		if err := a.checkMaps(maps, f.vms); err != nil || !maps.Unopened {
			return err
		}
		a.note(strings.Join(maps.Notes, "; "))
		return &status{code: exitPartial}
	}
	if err := maps.Unreadable(); err != nil {
		return err
	}
	shown := 0
	switch {
	case f.format == "llvm":
		err = text.PrintLLVM(a.stdout, maps, func(err error) { fmt.Fprintf(a.stderr, "reframe: %s\n", text.Printable(err.Error())) })
	case a.json:
		shown, err = text.WriteMaps(a.stdout, maps, want)
	default:
		shown, err = text.PrintMaps(text.Fold(a.stdout), a.style(), maps, want)
	}
	if err != nil {
		return err
	}
	for _, i := range maps.Images {
		if i.Err != nil {
			return &status{code: exitPartial} // the error was printed with its image
		}
	}
	if shown == 0 && !want.All() {
		return &status{exitPartial, noneFits(maps, want)}
	}
	if maps.Unopened {
		return &status{code: exitPartial}
	}
	return nil
}

// noMaps prints why there is no stack map. It returns an error only if the user requires maps or selects records.
func (a *app) noMaps(none *maps.Maps, f *mapsFlags, want *maps.Filter, why error) error {
	if f.require || !want.All() {
		return &status{exitPartial, why.Error()}
	}
	a.note(why.Error())
	var err error
	switch {
	case !a.json:
	case f.check:
		err = a.checkMaps(none, f.vms)
	default:
		_, err = text.WriteMaps(a.stdout, none, want)
	}
	return err
}

// noneFits returns the message for filters that match no record, with the nearest record.
func noneFits(maps *maps.Maps, want *maps.Filter) string {
	text := fmt.Sprintf("%s: none of its %s matches the filters", maps.Source, text.Count(maps.Records(), "record"))
	if want.Address == nil {
		return text
	}
	if near, ok := maps.Nearest(*want.Address); ok {
		return fmt.Sprintf("%s; nearest to %v is record %d at %v", text, *want.Address, uint64(near.Record().ID), near.Addr)
	}
	return text + "; an unlinked object has no addresses"
}

// options returns the options and the filter, or rejects contradictory flags.
func (f *mapsFlags) options(a *app, c *cobra.Command, args []string) (o maps.Options, want *maps.Filter, err error) {
	sources := len(args) + len(kindsGiven(c))
	given := c.Flags().Changed
	filtered := given("function") || given("record") || given("address")
	switch {
	case given("object") && len(args) > 0:
		return o, nil, usage("--object requires a process or a core: -p PID or --core CORE")
	case sources != 1:
		return o, nil, usage("maps takes one of FILE, -p PID, --core CORE, --remote ADDR and --delve ADDR")
	case len(args) == 1 && args[0] == "":
		return o, nil, usage("the name of the file must not be empty")
	case c.Flags().Changed("pid") && f.inputs.pid <= 0:
		return o, nil, usage("-p %d: a process id must be above 0", f.inputs.pid)
	case f.format != "text" && f.format != "llvm":
		return o, nil, usage("--format %s: expected text or llvm", f.format)
	case f.format == "llvm" && (filtered || f.check || given("json") || given("layout")):
		return o, nil, usage("--format llvm cannot be combined with a filter, --check, --json or --layout")
	case f.check && filtered:
		return o, nil, usage("--check cannot be combined with a filter")
	case given("arch") && len(args) == 0:
		return o, nil, usage("--arch requires a file with the raw bytes of a section")
	}
	if err := f.inputs.checkFiles(c); err != nil {
		return o, nil, err
	}
	if err := f.inputs.checkWait(c); err != nil {
		return o, nil, err
	}
	if want, err = f.filter(given); err != nil {
		return o, nil, err
	}
	o.Dialect = stackmap.Dialect(f.dialect)
	if given("dialect") && !slices.Contains(stackmap.Dialects(), o.Dialect) {
		return o, nil, usage("--dialect %s: expected one of %s", f.dialect, dialects())
	}
	if given("arch") {
		ok := false
		if o.Arch, ok = machine.ByName(f.arch); !ok {
			return o, nil, usage("--arch %s: expected one of %s", f.arch, archs())
		}
	}
	f.inputs.apart = true
	read, err := f.inputs.options(a)
	o.Modules, o.VMs = read.Modules, read.VMs
	f.vms = read.VMs
	if err == nil && len(read.Layouts) > 0 {
		err = usage("--layout %s: maps takes a layout of a virtual machine, FILE.star or a builtin name; use reframe lint to check FILE.json", read.Layouts[0].Name)
	}
	return o, want, err
}

func (f *mapsFlags) filter(given func(string) bool) (*maps.Filter, error) {
	want := &maps.Filter{Name: f.function}

	for _, text := range f.records {
		id, err := recordID(text)
		if err != nil {
			return nil, err
		}
		want.IDs = append(want.IDs, id)
	}
	if given("address") {
		addr, err := strconv.ParseUint(f.address, 0, 64)
		if err != nil {
			return nil, usage("--address %s: expected an address, such as 0x7f184e5d308b", f.address)
		}
		at := machine.Addr(addr)
		want.Address = &at
	}
	return want, nil
}

// recordID parses the value of --record.
func recordID(text string) (uint64, error) {
	id, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		return 0, usage("--record %s: expected a 64-bit number, such as 2882400000 or 0xabcdef00", text)
	}
	return id, nil
}

// open reads the maps. release closes them, and must be called after they were printed.
func (f *mapsFlags) open(ctx context.Context, args []string, o maps.Options) (found *maps.Maps, release func(), err error) {
	if len(args) == 1 {
		found, err = maps.OfFile(args[0], o)
		return found, found.Close, err
	}
	objects, err := f.inputs.given()
	if err != nil {
		return nil, nil, err
	}
	var t *ptrace.Target
	if f.inputs.still() {
		o := f.inputs.files
		o.Given = objects
		t, err = f.inputs.openStill(ctx, o)
	} else {
		t, err = ptrace.Survey(f.inputs.pid, ptrace.Options{DebugDirs: f.inputs.files.DebugDirs, Objects: objects})
	}
	if err != nil {
		return nil, nil, err
	}
	found, err = maps.OfTarget(t, o)
	if lost := t.Lost(); lost != nil {
		err = lost
	}
	if err != nil {
		t.Close()
	}
	return found, t.Close, err
}

// checkMaps prints which rules the stack maps satisfy. It returns exitPartial as the status if a rule is violated.
func (a *app) checkMaps(m *maps.Maps, vms []*vmlayout.Layout) error {
	report, err := m.Check(vms...)
	if err != nil {
		return err
	}
	if a.json {
		err = text.WriteJSON(a.stdout, report)
	} else {
		err = text.PrintRules(text.Fold(a.stdout), a.style(), report)
	}
	if err == nil && report.Broken() > 0 {
		err = &status{code: exitPartial} // each violation was printed
	}
	return err
}
