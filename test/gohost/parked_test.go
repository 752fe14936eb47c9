package gohost

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// functionsOf returns the functions of frames, as Go names them.
func functionsOf(frames []frame.Frame) (names []string) {
	for i := range frames {
		names = append(names, strings.TrimSuffix(frames[i].Function, ".abi0"))
	}
	return names
}

// TestParkedInCallback requires the whole stack of a goroutine that waits in Go code which C called: Go, C and Go again.
func TestParkedInCallback(t *testing.T) {
	p := livetest.Program(t, livetest.CgoBinary(t, "testdata/host", "-gcflags=-l"), "parked")
	p.Quiet(t, 0)
	for _, args := range [][]string{{clitest.PID(p)}, {clitest.PID(p), "--hold"}, {livetest.Gcore(t, p)}} {
		report := goroutinesOf(t, args...)
		i := slices.IndexFunc(report.Goroutines, func(g frame.ParkedGoroutine) bool { return g.Goroutine.Start == "main.worker" })
		require.GreaterOrEqual(t, i, 0)
		g := report.Goroutines[i]
		require.Equal(t, "waiting", g.Goroutine.State)
		require.Equal(t, map[string]string{"request": "42"}, g.Goroutine.Labels)
		require.Empty(t, g.End)
		names := functionsOf(g.Frames)
		require.Equal(t, []string{"runtime.gopark", "runtime.block", "main.goCallback"}, names[:3])
		at := slices.Index(names, "crosscall2")
		require.Equal(t, []string{"crosscall2", "goCallback", "recurse", "recurse", "recurse", "recurse"}, names[at:][:6])
		require.Equal(t, []string{"runtime.asmcgocall", "runtime.cgocall", "main._Cfunc_recurse", "main.worker", "main.main.gowrap1", "runtime.goexit"}, names[at+7:])
		for _, th := range report.Threads {
			require.False(t, th.Goroutine != nil && th.Goroutine.ID == g.Goroutine.ID, "no thread runs it")
		}
	}
}

// many is the number of goroutines that must be shown.
const many = 10_000

// TestManyGoroutines requires the stacks of 10,000 parked goroutines, and lets the text show each stack once.
func TestManyGoroutines(t *testing.T) {
	p := livetest.Program(t, livetest.CgoBinary(t, "testdata/many", "-gcflags=-l"), fmt.Sprint(many))
	p.Quiet(t, 0)
	report := goroutinesOf(t, clitest.PID(p))
	depths := map[int]int{}
	seen := map[int64]bool{}
	for _, g := range report.Goroutines {
		require.Empty(t, g.End, "goroutine %d", g.Goroutine.ID)
		require.False(t, seen[g.Goroutine.ID], "goroutine %d is listed twice", g.Goroutine.ID)
		seen[g.Goroutine.ID] = true
		if g.Goroutine.Start == "main.receive" {
			names := functionsOf(g.Frames)
			depth := len(names) - 6
			want := slices.Concat([]string{"runtime.gopark", "runtime.chanrecv", "runtime.chanrecv1", "main.receive"}, slices.Repeat([]string{"main.receive"}, depth),
				[]string{"main.main.gowrap1", "runtime.goexit"})
			require.Equal(t, want, names)
			depths[depth]++
		}
	}
	for depth := range 10 {
		require.Equal(t, many/10, depths[depth], "depth %d", depth)
	}
	text := clitest.Run(t, "frames", "--goroutines", clitest.PID(p))
	require.Zero(t, text.Code, text.Stderr)
	require.Equal(t, 10, strings.Count(text.Stdout, "[waiting] of main.receive\n"))
	require.Equal(t, 10, strings.Count(text.Stdout, "and 999 more goroutines with the same stack: "))
}

// TestGoroutinesRefused requires the reason why goroutines cannot be shown.
func TestGoroutinesRefused(t *testing.T) {
	stripped := livetest.Program(t, livetest.CgoBinary(t, "testdata/host", "-gcflags=-l", "-ldflags=-s -w"), "plain")
	clitest.Run(t, "frames", "--goroutines", clitest.PID(stripped)).Fails(t, 2, "--goroutines: the Go program has no DWARF")
	clitest.Run(t, "frames", "--goroutines", "-t", clitest.PID(stripped), clitest.PID(stripped)).Fails(t, 64, "--goroutines cannot be combined with -t")
	c := livetest.Program(t, livetest.CBinary(t, "../deopt/testdata/gdbstack/stacks.c"), "nanosleep")
	clitest.Run(t, "frames", "--goroutines", clitest.PID(c)).Fails(t, 2, "--goroutines: the target runs no Go program")
}
