package roots_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/gcprogram"
	"example.com/reframe/test/livetest"
)

// programSeeds returns the seeds of the random programs: 2 in make test, 100 with FIDELITY=all.
func programSeeds() int64 { return int64(livetest.Times(2, 100)) }

// eachProgram runs a test for random programs of each release of LLVM.
func eachProgram(t *testing.T, test func(t *testing.T, p *gcprogram.Program)) {
	t.Parallel()
	livetest.NeedsTools(t)
	for seed := range programSeeds() {
		for _, version := range livetest.ShareOf(gcprogram.Releases, t.Name(), seed) {
			t.Run(fmt.Sprintf("seed %d llvm %d", seed, version), func(t *testing.T) { test(t, gcprogram.New(t, seed, version)) })
		}
	}
}

// TestProgramsRunWithACollector requires that the random programs compute the same with a collection at each safepoint as without any.
func TestProgramsRunWithACollector(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *gcprogram.Program) {
		binary := p.Binary(t)
		never := p.Run(t, binary, "-every", "0")
		require.False(t, never.Failed(), "%s: %s", p, never.Text)
		for _, args := range [][]string{{}, {"-fill"}, {"-every", "3"}} {
			o := p.Run(t, binary, args...)
			require.False(t, o.Failed(), "%s %q: status %d, %s", p, args, o.Status, o.Text)
			require.Equal(t, never.Result, o.Result, "%s %q", p, args)
		}
	})
}

// TestRootsOfRandomPrograms requires that the roots of a process that waits after a collection are those that its collector visited: in each frame the
// same slots with the same pointers, and the same distances from the bases.
func TestRootsOfRandomPrograms(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *gcprogram.Program) {
		binary := p.Binary(t)
		total := p.Run(t, binary).Collections
		log := filepath.Join(t.TempDir(), "log")
		const stops = 3
		step := max(1, total/stops)
		process := livetest.Program(t, binary, "-log", log, "-stop", "1", "-step", strconv.Itoa(step))
		process.AwaitPause(t)
		for n := range min(stops, total) {
			if n > 0 {
				process.SignalInPause(t, syscall.SIGUSR1)
			}
			logged := gcprogram.ReadLog(t, log)
			requireRoots(t, p, process, &logged[len(logged)-1])
		}
	})
}

// requireRoots compares the roots of a process with a collection that has just ended.
func requireRoots(t *testing.T, p *gcprogram.Program, process *livetest.Process, c *gcprogram.Collection) {
	t.Helper()
	out, r := read(t, "-p", clitest.PID(process), "--ir", p.Module)
	require.Zero(t, r.Code, "%s: %s", p, r.Stderr)
	number := 0
	for _, f := range out.Threads[0].Frames {
		if f.Record == nil { // a C function between compiled functions
			continue
		}
		require.Less(t, number, len(c.Frames), "%s", p)
		logged := &c.Frames[number]
		number++
		require.Equal(t, logged.ID, f.Record.ID, "%s", p)
		want, got := pointersOf(logged), []string{}
		for _, root := range f.Roots {
			if root.Alloca {
				got = append(got, "stack object "+root.Hex)
			} else if !root.BaseOnly {
				for _, word := range words(root.Hex) {
					got = append(got, "pointer "+word)
				}
			}
		}
		slices.Sort(got)
		require.Equal(t, want, got, "%s, collection %d, frame %d of record %d", p, c.Number, number-1, logged.ID)
		require.Equal(t, distancesOf(logged), distances(f.Roots), "%s, collection %d, frame %d of record %d", p, c.Number, number-1, logged.ID)
	}
	require.Len(t, c.Frames, number, "%s, collection %d", p, c.Number)
}

// pointersOf returns the new contents of the slots that the collector visited, sorted.
func pointersOf(f *gcprogram.Frame) []string {
	all := []string{}
	seen := map[uint64]bool{}
	for _, r := range f.Roots {
		if seen[r.Slot] {
			continue
		}
		seen[r.Slot] = true
		if r.StackObject {
			all = append(all, fmt.Sprintf("stack object %#x", r.Slot))
		} else {
			all = append(all, fmt.Sprintf("pointer %#x", r.New))
		}
	}
	slices.Sort(all)
	return all
}

// distancesOf returns the derived pointers that the collector stored, if it also updated their bases, with their distances from the bases, sorted.
func distancesOf(f *gcprogram.Frame) []string {
	updated := map[uint64]bool{}
	for _, r := range f.Roots {
		updated[r.Slot] = true
	}
	all := []string{}
	for _, r := range f.Roots {
		if r.Slot != r.BaseSlot && updated[r.BaseSlot] {
			all = append(all, fmt.Sprintf("%#x %d", r.New, int64(r.New-r.NewBase)))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// distances returns the derived pointers that the verb lists, with their distances from the bases, sorted.
func distances(list []root) []string {
	updated := map[int]bool{}
	for _, r := range list {
		updated[r.Index] = !r.BaseOnly && !r.Alloca
	}
	all := []string{}
	for _, r := range list {
		if r.GC != nil && r.GC.Base != nil && updated[*r.GC.Base] {
			all = append(all, r.Hex+" "+r.GC.Offset)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
