package vmframes_test

import (
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/static/lint"
	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/test/livetest"
	"example.com/reframe/test/tinyvmtest"
)

// A mutant is the layout named simple with one change.
type mutant struct {
	name, old, new string
	reason         string // why the change has no effect that could be found, or ""
}

var mutants = []mutant{
	{name: "reexecute and after swapped", old: `["reexecute", "after",`, new: `["after", "reexecute",`},
	{name: "in-call is reexecute", old: `"in-call"`, new: `"reexecute"`},
	{name: "in-call is after", old: `"in-call"`, new: `"after"`},
	{name: "locals and stack swapped", old: `LOCAL, STACK,`, new: `STACK, LOCAL,`},
	{name: "stack and monitors swapped", old: `STACK, MONITOR,`, new: `MONITOR, STACK,`},
	{name: "objects and fields swapped", old: `OBJECT, FIELD,`, new: `FIELD, OBJECT,`},
	{name: "boxes and references swapped", old: `BOXED, REFERENCE,`, new: `REFERENCE, BOXED,`},
	{name: "plain values and boxes swapped", old: `PLAIN, BOXED,`, new: `BOXED, PLAIN,`},
	{name: "virtual and dead swapped", old: `VIRTUAL, DEAD =`, new: `DEAD, VIRTUAL =`},
	{name: "references are numbers", old: `as_type("ref")`, new: `as_type("i64")`},
	{name: "references are cut", old: `as_type("ref")`, new: `as_type("i32")`},
	{name: "plain values are i32", old: "    return v\n", new: "    return v.as_type(\"i32\")\n"},
	{name: "plain values are f64", old: "    return v\n", new: "    return v.as_type(\"f64\")\n"},
	{name: "boxes of ints one lower", old: `ints = 0xffff`, new: `ints = 0xfffe`},
	{name: "boxes of doubles with another offset", old: `offset = 1 << 48`, new: `offset = 1 << 49`},
	{name: "local one too high", old: `f.local(index,`, new: `f.local(index + 1,`},
	{name: "stack one too high", old: `f.stack(index,`, new: `f.stack(index + 1,`},
	{name: "position one too high", old: `r.constant("a position")`, new: `r.constant("a position") + 1`},
	{name: "method and position swapped", old: `frame(r.next(), r.constant("a position"), RESUME[index])`,
		new: `(lambda method, position: frame(position, method, RESUME[index]))(r.next(), r.next())`},
	{name: "outermost first", old: `outermost_first[::-1]`, new: `outermost_first`},
	{name: "the callers left out", old: `outermost_first[::-1]`, new: `outermost_first[-1:]`},
	{name: "a new frame does not end the one before", old: "            outermost_first.append(f)\n", new: "            outermost_first = [f]\n"},
	{name: "monitors are eliminated the other way round", old: `index == 1)`, new: `index == 0)`},
	{name: "no monitor is eliminated", old: `eliminated = index == 1`, new: `eliminated = False`},
	{name: "monitors left out", old: `f.monitor(value(r, how), eliminated = index == 1)`, new: `r.skip(1)`},
	{name: "field one too high", old: `o.field(offset,`, new: `o.field(offset + 8,`},
	{name: "fields by their numbers", old: `o.field(offset,`, new: `o.field((offset - 16) // 8,`},
	{name: "one field less", old: `range(r.constant("the number of fields"))`, new: `range(r.constant("the number of fields") - 1)`},
	{name: "one field more", old: `range(r.constant("the number of fields"))`, new: `range(r.constant("the number of fields") + 1)`},
	{name: "another object", old: `object_ref(r.constant("the id of an object"))`, new: `object_ref(r.constant("the id of an object") + 1)`},
	{name: "objects numbered otherwise", old: `virtual(index, r.next())`, new: `virtual(index + 1, r.next())`},
	{name: "all objects are one", old: `object_ref(r.constant("the id of an object"))`, new: `object_ref(0 * r.constant("the id of an object"))`},
	{name: "the 0 of a dead value is a tag", old: "        r.constant(\"the 0 of a dead value\")\n", new: ""},
	{name: "the depth is another extra", old: `"extra %d" % index)`, new: `"extra %d" % (index + 1))`},
	{name: "tag without its index", old: `tag & 0xffffff`, new: `tag & 0`},
	{name: "what one bit too low", old: `tag >> 32,`, new: `tag >> 31,`},
	{name: "how one bit too high", old: `tag >> 24 &`, new: `tag >> 25 &`},
	{name: "names of methods one byte on", old: `read_string(method)`, new: `read_string(method + 1)`},
	{name: "names of classes one byte on", old: `read_string(c)`, new: `read_string(c + 1)`},

	{name: "how of seven bits", old: `>> 24 & 0xff`, new: `>> 24 & 0x7f`, reason: "no record has a way above 4: both read the same"},
	{name: "index of 16 bits", old: `tag & 0xffffff`, new: `tag & 0xffff`, reason: "no record of tinyvm has an index that large: both read the same"},
	{name: "RESUME without rethrow", old: `"in-call", "rethrow"]`, new: `"in-call"]`, reason: "tinyvm has no exceptions, and no frame is resumed so"},
}

// found counts how often each check found a fault.
type found struct{ lint, errors, differences, exits int }

// lints counts lint's findings at the sites of modules under a layout.
func lints(t *testing.T, modules []*ir.Module, l *vmlayout.Layout) (n int) {
	t.Helper()
	report, err := lint.Lint(modules, nil, l)
	require.NoError(t, err)
	for _, f := range report.Findings {
		if f.Rule == lint.VMLayout {
			n++
		}
	}
	return n
}

// TestLayoutMutants requires that each change of the layout is found: by lint before anything runs, by an error of the layout at an exit, or by
// comparison with the interpreter's log.
func TestLayoutMutants(t *testing.T) {
	livetest.Slow(t)
	simple := layout(t, "simple")
	layouts := make([]*vmlayout.Layout, len(mutants))
	for n, m := range mutants {
		require.Equal(t, 1, strings.Count(string(simple.Text), m.old), m.name)
		var err error
		layouts[n], err = vmlayout.Parse("simple.star", []byte(strings.Replace(string(simple.Text), m.old, m.new, 1)))
		require.NoError(t, err, m.name)
	}
	results := make([]found, len(mutants))
	all := []way{{llvm: 14, opt: "0"}, {llvm: 19, opt: "2"}, {llvm: 22, opt: "0"}, {llvm: 22, opt: "2"}}
	for seed := range livetest.Times(6, 60) {
		// each mutant must differ in at least one program, so the programs do not depend on the selection
		some := all[seed%len(all):][:1]
		if livetest.Whole() {
			some = all
		}
		for _, w := range some {
			file := tinyvmtest.File(t, uint64(seed))
			_, log := interpreted(t, w.llvm, file)
			modules := dumped(t, w, file)
			require.Zero(t, lints(t, modules, simple))
			for n := range mutants {
				results[n].lint += lints(t, modules, layouts[n])
			}
			exits := make([][]exit, len(mutants))
			// Caches the reading of each record, because a layout depends only on the record.
			readings := make([]map[*deopt.Match]*vmlayout.Reading, len(mutants))
			for n := range readings {
				readings[n] = map[*deopt.Match]*vmlayout.Reading{}
			}
			traced(t, w, file, deopt.Options{}, func(x *trace.Exited, fuel int64, callee string) error {
				f, target := x.Frame, x.Frame.View().Target()
				m := f.Match()
				for n := range mutants {
					if readings[n][m] == nil {
						readings[n][m] = vmlayout.First(layouts[n:n+1], vmlayout.OfRecord(m.Site, m.Sites, m.Entry, nil, f.Function, f.Record))
					}
					vm := readings[n][m].Read(&vmlayout.Source{Slots: f.Slots, Memory: target, Static: target, Order: binary.LittleEndian})
					if vm != nil && vm.Error != "" {
						results[n].errors++
						continue
					}
					exits[n] = append(exits[n], exitOf(vm, target, fuel, callee, callee != ""))
				}
				return nil
			})
			was := arrivals(t, log, exits...)
			for n := range mutants {
				for _, e := range exits[n] {
					results[n].exits++
					if e.compare(was) != "" {
						results[n].differences++
					}
				}
			}
			require.NoError(t, os.Remove(log))
		}
	}
	for n, m := range mutants {
		r := results[n]
		t.Logf("%-44s lint: %5d sites, errors: %5d exits, comparison: %5d of %5d exits %s", m.name, r.lint, r.errors, r.differences, r.exits, m.reason)
		if m.reason == "" {
			require.Positive(t, r.lint+r.errors+r.differences, m.name)
		} else {
			require.Zero(t, r.lint+r.errors+r.differences, m.name)
		}
	}
}

// TestBundleFaults requires that each fault planted in tinyvm's compiler is found by lint, by an error, or by the comparison.
func TestBundleFaults(t *testing.T) {
	livetest.Slow(t)
	simple := layout(t, "simple")
	for _, fault := range []struct {
		name string
		from uint64 // number of the first program
	}{
		{name: "swap"}, {name: "field"}, {name: "position"}, {name: "mode"}, {name: "stack"}, {name: "class"}, {name: "stale"}, {name: "object"},
		// The last two faults are in code, not in bundles: the shown values are those of the wrong code, so they differ from the interpreter's.
		{name: "constant"}, {name: "guard", from: 28}, // few programs compute a number that is too large
	} {
		var r found
		programs := 0
		for seed := fault.from; seed < fault.from+50; seed++ {
			if !livetest.Whole() && r.lint+r.errors+r.differences > 0 {
				break
			}
			programs++
			for _, w := range livetest.ShareOf([]way{{llvm: 14, opt: "2"}, {llvm: 19, opt: "0"}, {llvm: 22, opt: "2"}}, fault.name, seed) {
				w.fault = fault.name
				file := tinyvmtest.File(t, seed)
				_, log := interpreted(t, w.llvm, file)
				modules := dumped(t, w, file)
				r.lint += lints(t, modules, simple)
				var all []exit
				traced(t, w, file, deopt.Options{VMs: []*vmlayout.Layout{simple}}, func(x *trace.Exited, fuel int64, callee string) error {
					if vm := x.Frame.VM; vm != nil && vm.Error != "" {
						r.errors++
						return nil
					}
					all = append(all, exitOf(x.Frame.VM, x.Frame.View().Target(), fuel, callee, callee != ""))
					return nil
				})
				was := arrivals(t, log, all)
				for _, e := range all {
					r.exits++
					if why := e.compare(was); why != "" {
						if r.differences++; r.differences == 1 {
							t.Logf("%-9s seed %d, %v: %s", fault.name, seed, w, why)
						}
					}
				}
				require.NoError(t, os.Remove(log))
			}
		}
		t.Logf("%-9s %3d programs, lint: %d sites, errors: %d exits, comparison: %d of %d exits", fault.name, programs, r.lint, r.errors, r.differences, r.exits)
		require.Positive(t, r.lint+r.errors+r.differences, fault.name)
	}
}
