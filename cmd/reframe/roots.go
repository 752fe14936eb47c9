package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/check/roots"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/report/text"
	"example.com/reframe/internal/static/maps"
	"example.com/reframe/ptrace"
	"example.com/reframe/replay"
)

func (a *app) rootsCommand() *cobra.Command {
	var k inputs
	var heap, from []string
	var count, objects bool
	var pathTo string
	var o roots.Options
	var file string // file with stack maps, instead of a target
	c := &cobra.Command{
		Use:   "roots {PID | CORE | FILE} [--ir FILE.ll]",
		Short: "Show the garbage collector's roots in every frame, or at every safepoint of a file",
		Long: `roots lists what the records of statepoints tell a garbage collector, frame by frame: each pointer
that the collector must update, with its location and its value, and for a derived pointer its base and
the distance from it. Stack objects (allocas) whose content the collector reads are listed by their
address. With --ir the pointers have names and types; where the record does not distinguish some of
them, the line lists the names that are possible.

Frames without a map between frames with one are listed too: a collector that walks the stack must pass
them, and finds no roots in them.

--heap checks where the base of each root points. Several ranges may be given, such as those of static
objects. --from-space names parts that the collector has left: a root there is stale.

If a layout (--layout FILE.star) defines object(addr), which describes the object at an address, the base
of each root is checked against the objects too: it must be the start of an object that is in use.
--objects walks the heap from the roots. It counts the objects that they reach by class, and lists
references to no object in use. --why prints a shortest path from a root to the object that contains an
address. The process is stopped meanwhile; record a core if it must not be.

For a file that is not a core (an object, an executable, a shared object or an archive) it lists the same
for each safepoint, without values: the return address, and each pointer with its location and its base.

` + positionalHelp + ` ` + coreHelp + `

` + debuggerHelp + `

Exit status: 0 OK, 1 a root is unavailable, unknown or wrong, a reference in the heap points to no object,
no root reaches the object of --why, a stack or the walk is incomplete, or object(addr) failed,
2 no frame is at a statepoint, or another error. For a file: 1 some maps are unreadable, 2 no safepoint.`,
		Example: `  reframe roots 41822
  reframe roots -p 41822 --ir program.ll
  reframe roots -p 41822 --heap 7f1200000000-7f1210000000
  reframe roots -p 41822 --layout heap.star
  reframe roots exit.core --layout heap.star --objects
  reframe roots exit.core --layout heap.star --why 7f1200000040
  reframe roots exit.core --ir program.ll --json
  reframe roots -p 41822 --count
  reframe roots program.o --ir program.ll`,
		Args: func(c *cobra.Command, args []string) (err error) {
			if file, err = rootsFile(c, args); file != "" || err != nil {
				return err
			}
			return onlyTarget(c, args)
		},
		ValidArgsFunction: completeTarget,
		RunE: func(c *cobra.Command, _ []string) error {
			if count && a.json {
				return usage("--count and --json cannot be combined: JSON has each root")
			}
			for _, two := range []struct {
				both  bool
				names string
			}{{count && objects, "--count and --objects"}, {count && pathTo != "", "--count and --why"}, {objects && pathTo != "", "--objects and --why"}} {
				if two.both {
					return usage("%s cannot be combined", two.names)
				}
			}
			if file != "" {
				return a.rootMaps(c, file, &k, o.Function, count)
			}
			var err error
			if o.Heap.Ranges, err = rangesOf("--heap", heap); err != nil {
				return err
			}
			if o.Heap.FromSpace, err = rangesOf("--from-space", from); err != nil {
				return err
			}
			var asked *uint64
			if c.Flags().Changed("why") {
				addr, err := strconv.ParseUint(strings.TrimPrefix(pathTo, "0x"), 16, 64)
				if err != nil {
					return usage("--why %q: expected an address in hexadecimal", pathTo)
				}
				asked = &addr
			}
			t, view, err := k.look(a, c, false)
			if err != nil {
				return err
			}
			defer t.Close()
			o.Heap.Objects = roots.NewObjects(view)
			r := roots.New(view, o)
			if objects || c.Flags().Changed("why") {
				if err := a.walkHeap(c.Context(), t, r, &o.Heap, asked); err != nil {
					return err
				}
			}
			t.Release()
			r.Target = view.About()
			switch {
			case a.json:
				err = text.WriteJSON(a.stdout, r)
			case asked != nil:
				err = text.PrintPath(text.Fold(a.stdout), a.style(), view, r)
			case objects:
				err = text.PrintReached(text.Fold(a.stdout), a.style(), view, r)
			case count:
				err = text.PrintRootCounts(text.Fold(a.stdout), a.style(), view, r)
			default:
				err = text.PrintRoots(text.Fold(a.stdout), a.style(), view, r)
			}
			return rootsOutcome(err, view, r, o.Function)
		},
	}
	k.walks = true
	k.addFlags(c)
	k.waitFlag(c)
	k.selfFlag(c)
	c.Flags().Var(names.Into(&o.Function, names.Exact), "function", "list only frames of the function with this `NAME`, or /RE/")
	c.Flags().StringArrayVar(&heap, "heap", nil, "check that the base of each root is in `START-END`, in hexadecimal (repeatable)")
	c.Flags().StringArrayVar(&from, "from-space", nil, "report roots whose base is in `START-END` (repeatable)")
	c.Flags().BoolVar(&objects, "objects", false, "walk the heap from the roots, and count the objects of each class")
	c.Flags().StringVar(&pathTo, "why", "", "print the path from a root to the object at `ADDR`, in hexadecimal")
	c.Flags().BoolVar(&count, "count", false, "print only the number of frames and roots of each function")
	c.Flags().BoolVar(&a.json, "json", false, "print one JSON object (schema "+roots.Schema+")")
	return c
}

// walkGarbage is the percentage of garbage in memory during a walk: each call of a layout leaves some.
const walkGarbage = 100

// walkHeap walks the heap from the roots of a report, to the object at an address if one is given. It shows the progress on a terminal.
func (a *app) walkHeap(ctx context.Context, t *ptrace.Target, r *roots.Report, heap *roots.Heap, asked *uint64) error {
	if heap.Objects == nil {
		return &status{exitFailed, "no layout defines object(addr), which describes the objects of the heap: --layout FILE.star"}
	}
	collecting(walkGarbage)
	began, last := time.Now(), time.Duration(0)
	shows := term.IsTerminal(int(a.stderr.Fd()))
	progress := func(objects, bytes uint64) {
		if since := time.Since(began); shows && since > progressAfter && since > last+progressAfter/5 {
			last = since
			fmt.Fprintf(a.stderr, "\r%d objects, %d MiB\x1b[K", objects, bytes>>20)
		}
	}
	var err error
	if asked != nil {
		err = r.Why(ctx, heap, t.Arch().Order, *asked, progress)
	} else {
		err = r.Walk(ctx, heap, t.Arch().Order, progress)
	}
	if last > 0 {
		fmt.Fprint(a.stderr, "\r\x1b[K")
	}
	if err == nil {
		err = t.Lost() // the process ended meanwhile
	}
	return err
}

// rootsFile returns the argument if it is a file whose stack maps roots lists; "" if it is a target.
func rootsFile(c *cobra.Command, args []string) (string, error) {
	if len(args) != 1 || isNumber(args[0]) || len(kindsGiven(c)) > 0 {
		return "", nil
	}
	info, err := os.Stat(args[0])
	if err != nil || !info.Mode().IsRegular() {
		return "", nil // onlyTarget reports the error
	}
	if is, err := replay.IsCore(args[0]); is || err != nil {
		return "", nil
	}
	return args[0], nil
}

// rootMaps prints the roots of each safepoint in the maps of a file.
func (a *app) rootMaps(c *cobra.Command, file string, k *inputs, function *names.Pattern, count bool) error {
	var wrong error
	c.Flags().Visit(func(f *pflag.Flag) {
		if c.LocalNonPersistentFlags().Lookup(f.Name) != nil && !slices.Contains([]string{"ir", "function", "count", "json"}, f.Name) {
			wrong = usage("--%s requires a process or a core; %s is neither", f.Name, file)
		}
	})
	if wrong != nil {
		return wrong
	}
	k.apart = true
	read, err := k.options(a)
	if err != nil {
		return err
	}
	m, err := maps.OfFile(file, maps.Options{Modules: read.Modules})
	if err != nil {
		return err
	}
	defer m.Close()
	if err := m.Unreadable(); err != nil {
		return err
	}
	var sum roots.FileSummary
	switch {
	case a.json:
		sum, err = text.WriteRootMaps(a.stdout, m, function)
	case count:
		sum, err = text.PrintRootMapCounts(text.Fold(a.stdout), a.style(), m, function)
	default:
		sum, err = text.PrintRootMaps(text.Fold(a.stdout), a.style(), m, function)
	}
	switch {
	case err != nil:
		return err
	case sum.Safepoints == 0 && function != nil:
		return &status{exitFailed, fmt.Sprintf("%s: no safepoint of %s; the file has %s", file, function.Text, text.Count(m.Records(), "record"))}
	case sum.Safepoints == 0:
		return &status{exitFailed, fmt.Sprintf("%s: none of its %s is that of a statepoint", file, text.Count(m.Records(), "record"))}
	case sum.Unreadable > 0:
		return &status{code: exitPartial}
	}
	return nil
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
	case sum.Unavailable > 0 || sum.Wrong > 0 || sum.Unknown > 0 || sum.Incomplete > 0 || r.Failure != nil || r.Reached.Wrong() || r.Path != nil && !r.Path.Reaches():
		return &status{exitPartial, ""}
	}
	return nil
}
