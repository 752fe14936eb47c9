package verify

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// mutantRuns is the number of verified exits of a mutant: exits of tick.ll are all similar.
var mutantRuns = uint64(livetest.Times(30, 100))

// TestVerifyMutants verifies programs with one fault in their stack maps. If the fault changes a value at an exit, verify must report it, unless the
// value is dead. A value is dead if the interpreter computes the same with all bits of the value undefined. A few wrong values give the same results
// as the right ones (a + b, with both exchanged), and cannot be found.
func TestVerifyMutants(t *testing.T) {
	livetest.Slow(t)
	versions, share := []int{19}, 23
	if os.Getenv("FIDELITY") == "all" {
		versions, share = []int{14, 19, 22}, 1
	}
	var found verdicts
	for _, version := range versions {
		for _, program := range mutated {
			path := livetest.PICObject(t, version, program, "-O2")
			o := frametest.ModuleOptions(t, version, program)
			original := newMutator(t, path, 0)
			for n, m := range mutants(t, path, 6) {
				if n%share == 0 {
					found.add(t, original, m, program, o)
				}
			}
		}
	}
	t.Logf("%d mutants: %d found by a difference, %d by a value that cannot be had, %d compute the same at all exits with other values, %d are about dead values, %d change no value at an exit",
		found.all, found.different, found.unavailable, found.alike, found.dead, found.unchanged)
	require.Positive(t, found.different)
	require.Positive(t, found.dead)
}

type verdicts struct{ all, different, unavailable, alike, dead, unchanged int }

// add verifies a mutant. If verify finds no difference, add requires that the fault cannot be found.
func (c *verdicts) add(t *testing.T, original *mutator, m mutant, program string, o deopt.Options) {
	t.Helper()
	c.all++
	rounds := livetest.Times(12, 40)
	if program == "tick.ll" {
		rounds = 1
	}
	command := livetest.ObjectHostCommand(t, writeMutant(t, m), livetest.ObjectHostOptions{Threads: 1, Rounds: rounds})
	summary, all := verified(t, command, Options{Options: o, Limit: mutantRuns, Steps: 50_000})
	require.NotZero(t, summary.Exits, "%s %v", program, m)
	if summary.Different > 0 {
		c.different++
		return
	}
	unavailable := slices.ContainsFunc(all, func(v *Verified) bool { return v.Status == NotComparable && named(v) })
	changed, alike, live := effect(t, original, command, o)
	switch {
	case len(live) > 0 && unavailable:
		c.unavailable++
	case len(live) > 0:
		var said []string
		for _, v := range all {
			said = append(said, fmt.Sprintf("%s: %s %s", v.Status, v.Why, v.Interpreter.Failed))
		}
		t.Errorf("%s %v: not found, and it changes what is computed: %s\n%s", program, m, strings.Join(live, "; "), strings.Join(said, "\n"))
	case alike:
		c.alike++
	case changed:
		c.dead++
	default:
		c.unchanged++
	}
}

// named reports whether an exit is not comparable because the frame lacks a value, or because its values cause a fault or an endless loop.
func named(v *Verified) bool {
	return v.Exit.Frame.Resume == nil || strings.Contains(v.Why, "the interpreter does not return") || slices.ContainsFunc(v.Exit.Frame.Slots, func(s frame.Slot) bool {
		return s.Status == frame.Missing && strings.Contains(v.Why, s.Reason)
	})
}

// effect runs the program once more and compares, at each exit, the values of the mutated map with those of the original. live lists values that
// differ and change the result. alike reports a value that differs and on which the result depends, but without another result.
func effect(t *testing.T, original *mutator, command []string, o deopt.Options) (changed, alike bool, live []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), livetest.Patience)
	defer cancel()
	s := frametest.Launched(t, command)
	exits := uint64(0)
	filter := trace.ExitFilter{AtReturn: true}
	_, err := trace.Run(ctx, s, trace.Options{Options: o, ExitFilter: filter, Full: true, Wait: true, Limit: mutantRuns, Warn: func(string) {}}, func(x *trace.Exited) error {
		exits++
		right := by(x.Frame, t, original)
		if right.Resume == nil {
			return nil
		}
		if x.Frame.Resume == nil {
			changed, live = true, append(live, "it cannot be resumed"+frame.Noted(x.Frame.Notes))
			return nil
		}
		for n := range min(len(right.Slots), len(x.Frame.Slots)) { // the mutated map may name fewer gc pointers
			was, is := right.Slots[n], x.Frame.Slots[n]
			if was.Status == frame.OK && is.Status == frame.OK && was.Value == is.Value && was.Hex == is.Hex {
				continue
			}
			if was.Status != frame.OK {
				continue // it is unknown whether the values differ
			}
			changed = true
			if !dependsOn(right, t, x, n) {
				continue
			}
			if likewise(computes(right, t, x, -1), computes(x.Frame, t, x, -1)) {
				alike = true
			} else {
				live = append(live, fmt.Sprintf("exit %d: %s is %s, and was %s", exits, was.Name, is.Value, was.Value))
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, s.Detach())
	return changed, alike, live
}

// by returns the same frame with the values of the original map.
func by(f *deopt.Frame, t *testing.T, original *mutator) *deopt.Frame {
	t.Helper()
	e := f.Match().Entry
	row := slices.IndexFunc(e.Map.Functions, func(g stackmap.Function) bool { return g.Addr == e.Function.Addr })
	number := 0
	for r := range e.Map.Records(e.Function) {
		if r.Offset == e.Record.Offset && r.ID == e.Record.ID {
			break
		}
		number++
	}
	right := parseMap(t, original.section)
	m := *f.Match()
	m.Entry.Map = right
	for r := range right.Records(&right.Functions[row]) {
		if number == 0 {
			m.Entry.Record = r.Clone()
			break
		}
		number--
	}
	require.Equal(t, e.Record.ID, m.Entry.Record.ID)
	out, err := f.As(&m)
	require.NoError(t, err)
	return out
}

// computed holds the results of the interpreter for a frame.
type computed struct {
	result string
	stored map[string]string // pages with their undefined bits
	err    error
}

func likewise(a, b computed) bool {
	return a.err == nil && b.err == nil && a.result == b.result && maps.Equal(a.stored, b.stored)
}

// computes runs the interpreter from the frame. All bits of the slot with index without are undefined, unless without is -1.
func computes(f *deopt.Frame, t *testing.T, x *trace.Exited, without int) (c computed) {
	t.Helper()
	s := &deopt.Stack{Thread: &deopt.Thread{ID: x.Thread.ID, Frames: x.Frames}, Frames: []*deopt.Frame{f}}
	if x.Point.Moment == frame.After {
		s.Returned = x.Thread.Registers
	}
	p, err := s.Prepare(interp.Options{MaxSteps: 1e6})
	if err != nil {
		return computed{err: err}
	}
	for _, held := range f.Holds(without) {
		v, err := interp.Undef(held.Type())
		require.NoError(t, err)
		p.Activations[0].Values[held] = v
	}
	result, err := p.Machine.ResumeStack(context.Background(), p.Activations)
	if err != nil {
		return computed{err: err}
	}
	c.stored = map[string]string{}
	if !result.Value.IsNone() {
		bits, unknown := result.Value.Bits()
		c.result = fmt.Sprint(bits, unknown)
	}
	for page := range p.Machine.Touched() {
		c.stored[page.Addr.String()] = string(page.Data) + string(page.Undefined)
	}
	return c
}

// dependsOn reports whether the interpreter's result depends on one slot of the frame.
func dependsOn(f *deopt.Frame, t *testing.T, x *trace.Exited, slot int) bool {
	t.Helper()
	want := computes(f, t, x, -1)
	require.NoError(t, want.err)
	return !likewise(want, computes(f, t, x, slot))
}

// TestVerifyValueThatIsRecordedTwice requires that an exit is not comparable if its record has one SSA value twice, with different contents. The
// reason must state that the record contradicts itself.
func TestVerifyValueThatIsRecordedTwice(t *testing.T) {
	path := livetest.Module(t, `target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
@five = global i64 5
define i64 @entry(i64 %s) {
  %x = load volatile i64, ptr @five
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %x, i64 %s, i64 %x)
  %r = add i64 %x, %s
  ret i64 %r
}`)
	object := frametest.Remapped(t, livetest.PICObject(t, 19, path), func(b *stackmap.Blob) {
		l := b.Functions[0].Records[0].Locations
		l[0] = l[1] // only the first of the two locations is wrong, so code that reads only the last one finds no error
	})
	m, err := ir.ParseFile(path)
	require.NoError(t, err)
	_, list := verified(t, livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 1}), Options{Options: deopt.Options{Modules: []*ir.Module{m}}})
	require.Len(t, list, 1)
	require.Equal(t, NotComparable, list[0].Status)
	require.Contains(t, list[0].Why, "the record has %x in 2 locations, and they hold different values")
}
