package gohost

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/ptrace"
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

// TestParkedInCallback requires the complete stack of a goroutine that waits in Go code which C has called: Go, C, and Go again.
func TestParkedInCallback(t *testing.T) {
	livetest.Slow(t)
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

// TestRecordedGoroutines requires that a core written by record has the goroutines of the process with their stacks, and so has a core recorded from
// that core.
func TestRecordedGoroutines(t *testing.T) {
	for _, c := range []struct{ program, argument string }{{"testdata/host", "parked"}, {"testdata/host", "plain"}, {"testdata/many", "1000"}} {
		t.Run(c.argument, func(t *testing.T) {
			p := livetest.Program(t, livetest.CgoBinary(t, c.program, "-gcflags=-l"), c.argument)
			p.Quiet(t, 0)
			first, second := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")
			require.Zero(t, clitest.Run(t, "record", clitest.PID(p), "-o", first).Code)
			require.Zero(t, clitest.Run(t, "record", first, "-o", second).Code)
			want := goroutinesOf(t, clitest.PID(p))
			require.GreaterOrEqual(t, len(want.Goroutines), 3)
			for _, core := range []string{first, second} {
				got := goroutinesOf(t, core)
				require.Equal(t, want.Goroutines, got.Goroutines)
				require.Equal(t, want.Threads, got.Threads)
			}
		})
	}
}

// TestParkedContradictions requires that no stack is shown for a goroutine if its status says that it waits but its other fields contradict the
// status.
func TestParkedContradictions(t *testing.T) {
	for _, c := range []struct {
		name, end string
		offset    int64 // offset in g
	}{
		{"it has a thread", "a thread runs it, or switches to or from it", 48},                     // g.m
		{"its stack pointer points elsewhere", "its saved stack pointer is outside its stack", 56}, // g.sched.sp
	} {
		t.Run(c.name, func(t *testing.T) {
			p := livetest.Program(t, livetest.CgoBinary(t, "testdata/many", "-gcflags=-l"), "10")
			p.Quiet(t, 0)
			target, err := ptrace.Capture(p.PID, ptrace.Options{})
			require.NoError(t, err)
			defer target.Close()
			list, ok := target.GoProgram().Image.Lookup("runtime.allgs")
			require.True(t, ok)
			mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", p.PID), os.O_RDWR, 0)
			require.NoError(t, err)
			defer mem.Close()
			words := func(addr int64, n int) []uint64 {
				b := make([]byte, 8*n)
				_, err := mem.ReadAt(b, addr)
				require.NoError(t, err)
				out := make([]uint64, n)
				require.NoError(t, binary.Read(bytes.NewReader(b), binary.LittleEndian, out))
				return out
			}
			slice := words(int64(list.Addr), 2)
			for _, g := range words(int64(slice[0]), int(slice[1])) {
				if words(int64(g)+48, 1)[0] == 0 { // no thread runs it
					_, err := mem.WriteAt(binary.LittleEndian.AppendUint64(nil, g), int64(g)+c.offset)
					require.NoError(t, err)
				}
			}
			r := clitest.Run(t, "frames", "--goroutines", "--json", clitest.PID(p))
			require.Equal(t, 1, r.Code, "stacks are missing: %s", r.Stderr)
			var report frame.Report
			require.NoError(t, json.Unmarshal([]byte(r.Stdout), &report))
			found := 0
			for _, g := range report.Goroutines {
				if g.Goroutine.Start == "main.receive" || g.Goroutine.Start == "main.main.gowrap1" {
					require.Equal(t, "waiting", g.Goroutine.State)
					require.Equal(t, "cut short: "+c.end, g.End)
					require.Empty(t, g.Frames)
					found++
				}
			}
			require.Equal(t, 10, found)
		})
	}
}

// many is the number of goroutines that must be shown.
const many = 10_000

// TestManyGoroutines requires the stacks of 10,000 parked goroutines. The text shows equal stacks once.
func TestManyGoroutines(t *testing.T) {
	livetest.Slow(t)
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

// TestGoroutinesRefused requires that the reason is reported if goroutines cannot be shown.
func TestGoroutinesRefused(t *testing.T) {
	stripped := livetest.Program(t, livetest.CgoBinary(t, "testdata/host", "-gcflags=-l", "-ldflags=-s -w"), "plain")
	clitest.Run(t, "frames", "--goroutines", clitest.PID(stripped)).Fails(t, 2, "--goroutines: the Go program has no DWARF")
	clitest.Run(t, "frames", "--goroutines", "-t", clitest.PID(stripped), clitest.PID(stripped)).Fails(t, 64, "--goroutines cannot be combined with -t")
	c := livetest.Program(t, livetest.CBinary(t, "../deopt/testdata/gdbstack/stacks.c"), "nanosleep")
	clitest.Run(t, "frames", "--goroutines", clitest.PID(c)).Fails(t, 2, "--goroutines: the target runs no Go program")
}
