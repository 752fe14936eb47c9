package stress

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// run stresses a command.
func run(t *testing.T, command []string, o Options) *Report {
	t.Helper()
	o.Time = livetest.Patience
	o.Warn = func(text string) { t.Log(text) }
	r, err := Run(context.Background(), command, o)
	require.NoError(t, err)
	return r
}

// options returns the options for a program of testdata/programs.
func options(t *testing.T, version int, program string) Options {
	t.Helper()
	return Options{Options: frametest.ModuleOptions(t, version, program), Seed: 1}
}

// TestNothingDiffers requires that a program prints the same as untouched, and as the same program in C, for any choice of deoptimized exits.
// committed is the number of commits of one thread in one round if all exits are chosen; 0 if it is not compared.
func TestNothingDiffers(t *testing.T) {
	livetest.Slow(t)
	programs := map[string]struct{ rounds, committed int }{
		"tick.ll": {2, 1}, "memory.ll": {100, 0}, "floats.ll": {20, 6}, "recursion.ll": {15, 1}, "state.ll": {50, 2}, "patch.ll": {40, 2}, "guards.ll": {40, 0},
	}
	var turns livetest.Turns
	for _, program := range slices.Sorted(maps.Keys(programs)) {
		for _, version := range []int{14, 19, 22} {
			for _, level := range []string{"-O0", "-O2"} {
				for _, probability := range []float64{0.01, 0.1, 1} {
					for _, threads := range []int{1, 3} {
						if turns.Out(23) {
							continue
						}
						t.Run(fmt.Sprintf("%s llc-%d %s %v of %d threads", program, version, level, probability, threads), func(t *testing.T) {
							t.Parallel()
							n := programs[program]
							h := livetest.ObjectHostOptions{Threads: threads, Rounds: n.rounds}
							o := options(t, version, program)
							o.Probability = probability
							r := run(t, livetest.ObjectHostCommand(t, livetest.PICObject(t, version, program, level), h), o)
							require.Equal(t, Same, r.Status, "%+v", r)
							want, _ := livetest.CVersion(t, program, h)
							require.Contains(t, string(r.Stressed.Stdout.kept), want)
							require.Equal(t, r.Chosen, r.Committed+r.Left)
							if probability == 1 {
								require.Equal(t, r.Exits, r.Chosen)
								require.Equal(t, program == "memory.ll", r.Left > 0, r.Reasons)
								if n.committed > 0 {
									require.EqualValues(t, threads*n.rounds*n.committed, r.Committed)
								}
							}
							if r.Exits > 600 || probability > 0.01 { // with fewer exits, possibly none is chosen
								require.Positive(t, r.Committed, "%+v", r)
							}
						})
					}
				}
			}
		}
	}
}

// rare is a program whose function @step has two values at its first site that differ only in its 38th call. Each call reaches its second site five
// times.
const rare = `
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
define i64 @step(i64 %i, i64 %a, i64 %b) noinline {
entry:
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 7, i32 0, i64 %i, i64 %a, i64 %b)
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %k1, %loop ]
  %s = phi i64 [ %i, %entry ], [ %s1, %loop ]
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 8, i32 0, i64 %k, i64 %s, i64 %a, i64 %b)
  %m = mul i64 %s, %a
  %s1 = add i64 %m, %b
  %k1 = add i64 %k, 1
  %c = icmp ult i64 %k1, 5
  br i1 %c, label %loop, label %done
done:
  ret i64 %s1
}
define i64 @entry(i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i1, %loop ]
  %acc = phi i64 [ %n, %entry ], [ %acc1, %loop ]
  %q = mul i64 %i, %i
  %a = add i64 %q, 3
  %is = icmp eq i64 %i, 37
  %more = select i1 %is, i64 5, i64 0
  %b = add i64 %a, %more
  %r = call i64 @step(i64 %i, i64 %a, i64 %b)
  %t = mul i64 %acc, 31
  %acc1 = add i64 %t, %r
  %i1 = add i64 %i, 1
  %c = icmp ult i64 %i1, 64
  br i1 %c, label %loop, label %done
done:
  ret i64 %acc1
}
`

// wrongRecord returns a copy of an object in which one record has two locations exchanged.
func wrongRecord(t *testing.T, object string, id stackmap.RecordID, one, other int) string {
	t.Helper()
	data, err := os.ReadFile(object)
	require.NoError(t, err)
	f, err := elf.NewFile(bytes.NewReader(data))
	require.NoError(t, err)
	s := f.Section(".llvm_stackmaps")
	section := data[s.Offset : s.Offset+s.Size]
	parsed, err := stackmap.Parse(section, stackmap.Options{Order: binary.LittleEndian, Dialect: stackmap.V3})
	require.NoError(t, err)
	blob := parsed.Maps[0].Blob()
	found := 0
	for _, f := range blob.Functions {
		for _, r := range f.Records {
			if r.ID == id {
				l := r.Locations
				l[one], l[other] = l[other], l[one]
				require.NotEqual(t, l[one], l[other])
				found++
			}
		}
	}
	require.Positive(t, found)
	wrong, err := stackmap.AppendBlob(nil, binary.LittleEndian, blob)
	require.NoError(t, err)
	require.Len(t, wrong, len(section))
	copy(section, wrong)
	path := filepath.Join(t.TempDir(), "wrong.o")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

// TestFaultIsNarrowedDown requires that a record that is wrong at only one exit is found at that exit, for any choice of other deoptimized exits. A
// run of only the exit with that number must find the difference again.
func TestFaultIsNarrowedDown(t *testing.T) {
	path := livetest.Module(t, rare)
	const call, inside = 38, 5
	native := Exit{2, (call-1)*(1+inside) + 1} // the host's second thread makes the call
	var turns livetest.Turns
	for _, version := range []int{14, 19, 22} {
		for _, level := range []string{"-O0", "-O2"} {
			if turns.Out(5) {
				continue
			}
			t.Run(fmt.Sprintf("llc-%d %s", version, level), func(t *testing.T) {
				t.Parallel()
				object := livetest.PICObject(t, version, path, level)
				command := func(object string) []string {
					return livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{})
				}
				o := options(t, version, path)
				o.Probability = 1
				require.Equal(t, Same, run(t, command(object), o).Status)

				wrong := command(wrongRecord(t, object, 7, 1, 2))
				r := run(t, wrong, o)
				require.Equal(t, Different, r.Status)
				require.Equal(t, []string{"stdout"}, whats(r))
				require.NotNil(t, r.Culprit, "%+v", r)
				require.Equal(t, Exit{2, call}, r.Culprit.Exit)
				require.Equal(t, native, r.Culprit.Native)
				require.True(t, r.Culprit.Single)
				require.Empty(t, r.Culprit.Uncounted)
				require.EqualValues(t, 7, r.Culprit.Record.ID)
				require.EqualValues(t, call, r.Culprit.Hit)
				require.True(t, r.Culprit.Resumed.Committed.Written)
				require.LessOrEqual(t, r.Reruns, 10)
				slots := map[string]string{}
				for _, s := range r.Culprit.Slots {
					slots[s.Name] = s.Value
				}
				require.Equal(t, map[string]string{"%i": "37", "%a": fmt.Sprint(37*37 + 3 + 5), "%b": fmt.Sprint(37*37 + 3)}, slots, "swapped")

				o.Only = []Exit{native}
				r = run(t, wrong, o)
				require.Equal(t, Different, r.Status)
				require.Equal(t, native, r.Culprit.Native)
				require.Equal(t, []uint64{1, 1, 0}, []uint64{r.Chosen, r.Committed, r.Left})
				o.Only = []Exit{{2, native.Number - 1}, {2, native.Number + 6}}
				require.Equal(t, Same, run(t, wrong, o).Status)

				// Without commits at the wrong exits, nothing differs.
				o.Only, o.Sites, o.Records = nil, nil, []uint64{8}
				r = run(t, wrong, o)
				require.Equal(t, Same, r.Status)
				require.EqualValues(t, 64, r.Committed)
			})
		}
	}
}

func whats(r *Report) (list []string) {
	for _, d := range r.Differences {
		list = append(list, d.What)
	}
	return list
}

// TestFaultAmongThreads requires that each of several threads counts its own exits, for any order of threads, and that a fault in one of them is
// found.
func TestFaultAmongThreads(t *testing.T) {
	livetest.Slow(t)
	const threads, call = 3, 38
	object := livetest.PICObject(t, 19, livetest.Module(t, rare), "-O2")
	o := options(t, 19, livetest.Module(t, rare))
	o.Probability = 1
	o.Records = []uint64{7}
	command := func(object string) []string {
		return livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Threads: threads})
	}
	r := run(t, command(object), o)
	require.Equal(t, Same, r.Status)
	require.EqualValues(t, threads*64, r.Committed)
	r = run(t, command(wrongRecord(t, object, 7, 1, 2)), o)
	require.Equal(t, Different, r.Status)
	require.NotNil(t, r.Culprit, "%+v", r)
	require.EqualValues(t, call, r.Culprit.Native.Number)
	require.Positive(t, r.Culprit.Native.Thread)
	require.LessOrEqual(t, r.Culprit.Native.Thread, threads+1)
	require.True(t, r.Culprit.Single)
}

// TestFaultsAreFound requires that a record, bundle or layout with two values exchanged is found, and that the reported exit belongs to it.
func TestFaultsAreFound(t *testing.T) {
	livetest.Slow(t)
	for _, c := range []struct {
		program     string
		record      stackmap.RecordID
		one, other  int
		probability float64
		rounds      int
	}{
		{"tick.ll", 1, 2, 3, 0.01, 1},
		{"memory.ll", 32, 1, 3, 0.5, 40},
		{"floats.ll", 44, 0, 1, 0.5, 20},
		{"recursion.ll", 62, 1, 2, 0.3, 8},
		{"patch.ll", 0, 0, 1, 0.1, 20},
	} {
		for _, version := range livetest.ShareOf([]int{14, 19, 22}, "faults", c.program) {
			t.Run(fmt.Sprintf("%s llc-%d", c.program, version), func(t *testing.T) {
				t.Parallel()
				object := livetest.PICObject(t, version, c.program, "-O2")
				id := c.record
				if id == 0 {
					id = firstWith(t, object, max(c.one, c.other))
				}
				o := options(t, version, c.program)
				o.Probability = c.probability
				r := run(t, livetest.ObjectHostCommand(t, wrongRecord(t, object, id, c.one, c.other), livetest.ObjectHostOptions{Rounds: c.rounds}), o)
				require.Equal(t, Different, r.Status, "%+v", r)
				require.NotNil(t, r.Culprit, "%+v", r)
				require.EqualValues(t, id, r.Culprit.Record.ID)
				require.True(t, r.Culprit.Single)
			})
		}
	}
}

// firstWith returns the id of the first record that has a location with this index.
func firstWith(t *testing.T, object string, location int) stackmap.RecordID {
	t.Helper()
	for _, f := range functionsOf(t, object) {
		for _, r := range f.Records {
			if len(r.Locations) > location {
				return r.ID
			}
		}
	}
	t.Fatal("no record")
	return 0
}

// TestWrongLayout requires that a layout that exchanges the names of two operands is found like a wrong record.
func TestWrongLayout(t *testing.T) {
	const program = "guards.ll"
	text, err := os.ReadFile(livetest.Testdata(t, "programs", "guards.layout.json"))
	require.NoError(t, err)
	wrong := strings.NewReplacer(`"%i"`, `"%acc"`, `"%acc"`, `"%i"`).Replace(string(text))
	l, err := layout.Parse("wrong.json", []byte(wrong))
	require.NoError(t, err)
	o := options(t, 19, program)
	o.Probability = 1
	command := livetest.ObjectHostCommand(t, livetest.PICObject(t, 19, program, "-O2"), livetest.ObjectHostOptions{Rounds: 20})
	require.Equal(t, Same, run(t, command, o).Status)
	o.Layouts = []*layout.Layout{l}
	r := run(t, command, o)
	require.Equal(t, Different, r.Status, "%+v", r)
	require.Equal(t, "deoptimize", r.Culprit.Record.Site)
	require.True(t, r.Culprit.Single)
}
