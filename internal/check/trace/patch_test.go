package trace

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// patchingProgram is testdata/programs/patching.c, which waits for a line of input.
type patchingProgram struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Reader
}

// startPatching starts the program, compiled ahead of time or under lli of a kind.
func startPatching(t *testing.T, version int, how string, args ...any) *patchingProgram {
	t.Helper()
	cmd := livetest.PatchingCommand(t, version, how, args...)
	p := &patchingProgram{cmd: cmd}
	var err error
	p.stdin, err = cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	p.lines = bufio.NewReader(out)
	p.says(t, "ready")
	return p
}

func (p *patchingProgram) says(t *testing.T, want string) {
	t.Helper()
	line, err := p.lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, want+"\n", line)
}

func (p *patchingProgram) goOn(t *testing.T) {
	t.Helper()
	_, err := io.WriteString(p.stdin, "\n")
	require.NoError(t, err)
}

// finish returns the numbers that the program prints at its end, by the words before them.
func (p *patchingProgram) finish(t *testing.T) map[string]uint64 {
	t.Helper()
	rest, err := io.ReadAll(p.lines)
	require.NoError(t, err)
	require.NoError(t, p.cmd.Wait(), "%s", rest)
	said := map[string]uint64{}
	for line := range strings.Lines(string(rest)) {
		at := strings.LastIndexByte(strings.TrimSpace(line), ' ')
		var n uint64
		_, err := fmt.Sscan(line[at+1:], &n)
		require.NoError(t, err, line)
		said[line[:at]] = n
	}
	return said
}

// trace traces the program to its end, and returns the values of %n at each site's exits.
func (p *patchingProgram) trace(t *testing.T, o Options) (values map[uint64][]uint64, sum *Summary, said []string) {
	t.Helper()
	return p.traceEach(t, o, func(*Exited) {}, func([]string) {})
}

// traceEach is trace with a callback for each exit, and one for each warning, which gets all warnings so far.
func (p *patchingProgram) traceEach(t *testing.T, o Options, each func(*Exited), warned func([]string)) (values map[uint64][]uint64, sum *Summary, said []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), livetest.Patience)
	defer cancel()
	s, err := ptrace.Open(ctx, p.cmd.Process.Pid)
	require.NoError(t, err)
	o.Warn = func(text string) {
		said = append(said, text)
		warned(said)
	}
	p.goOn(t)
	values = map[uint64][]uint64{}
	sum, err = Run(ctx, s, o, func(x *Exited) error {
		require.Len(t, x.Frame.Slots, 1)
		var n uint64
		_, err := fmt.Sscan(string(x.Frame.Slots[0].Hex), &n)
		require.NoError(t, err)
		values[x.Point.Record] = append(values[x.Point.Record], n)
		each(x)
		return nil
	})
	require.NoError(t, errors.Join(err, s.Detach()))
	return values, sum, said
}

func patchingModule(t *testing.T, version int) deopt.Options {
	t.Helper()
	m, err := ir.ParseFile(livetest.IR(t, version, "patching.ll"))
	require.NoError(t, err)
	return deopt.Options{Modules: []*ir.Module{m}}
}

// patchingWays lists the ways to run the program, and whether its module is given.
var patchingWays = []struct {
	version int
	how     string
	named   bool
}{{19, "aot", true}, {19, "aot", false}, {14, "aot", true}, {22, "aot", true}, {19, "mcjit", true}, {14, "mcjit", true},
	{22, "mcjit", true}, {14, "orc", true}, {19, "orc", true}, {19, "orc", false}, {22, "orc", true}}

func eachPatchingWay(t *testing.T, run func(t *testing.T, version int, how string, o deopt.Options)) {
	for n, way := range patchingWays {
		if !livetest.Whole() && !slices.Contains([]int{1, 2, 6, 9}, n) {
			continue // each release, each way, with and without its module
		}
		t.Run(fmt.Sprintf("%d %s named %v", way.version, way.how, way.named), func(t *testing.T) {
			o := deopt.Options{}
			if way.named {
				o = patchingModule(t, way.version)
			}
			run(t, way.version, way.how, o)
		})
	}
}

func upTo(n uint64) (list []uint64) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// TestTracePatched requires that each pass of a site is reported while the program patches the site and restores it: debug registers hold the
// breakpoints.
func TestTracePatched(t *testing.T) {
	livetest.Slow(t)
	if !livetest.DebugRegisters(t) {
		return // TestTracePatchedBreakpoints covers this case
	}
	eachPatchingWay(t, func(t *testing.T, version int, how string, o deopt.Options) {
		const n = 200
		p := startPatching(t, version, how, "phases", 0, 3, 1, n)
		values, sum, said := p.trace(t, Options{Options: o})
		require.Empty(t, said)
		require.Zero(t, sum.Overwritten)
		got := p.finish(t)
		require.EqualValues(t, 4*n, got["called"])
		for site := range uint64(4) {
			require.EqualValues(t, 3*n, got[fmt.Sprintf("site %d passed", site)])
			require.True(t, slices.Equal(upTo(3*n), values[100+site]), "%d of %d at site %d: %v", len(values[100+site]), 3*n, site, said)
		}
		require.EqualValues(t, 4*3*n, sum.Exits)
	})
}

// TestTracePatchedWhileThreadsPass requires that each pass of a site is reported while the program patches it, while 16 threads pass.
func TestTracePatchedWhileThreadsPass(t *testing.T) {
	livetest.Slow(t)
	if !livetest.DebugRegisters(t) {
		return // TestTracePatchedBreakpoints covers this case
	}
	eachPatchingWay(t, func(t *testing.T, version int, how string, o deopt.Options) {
		const threads, n = 16, 100
		p := startPatching(t, version, how, "toggles", 0, 3, threads, n)
		values, sum, said := p.trace(t, Options{Options: o})
		require.Empty(t, said)
		require.Zero(t, sum.Overwritten)
		got := p.finish(t)
		want := uint64(0)
		for site := range uint64(4) {
			slices.Sort(values[100+site])
			require.True(t, slices.Equal(upTo(threads*n), values[100+site]), "%d of %d at site %d: %v", len(values[100+site]), threads*n, site, said)
			want += (3 + site) * threads * n * (threads*n - 1) / 2
		}
		require.Equal(t, want, got["sum"])
	})
}

// TestTracePatchedBreakpoints requires, for sites beyond the debug registers, that each pass is reported, or that a warning reports that exits may be
// missing.
func TestTracePatchedBreakpoints(t *testing.T) {
	livetest.Slow(t)
	way, held := 0, livetest.HeldPlaces(t)
	eachPatchingWay(t, func(t *testing.T, version int, how string, o deopt.Options) {
		way++
		for n, c := range []struct {
			mode            string
			threads, passes uint64
			phases          uint64
		}{{"once", 1, 20, 1}, {"phases", 1, 20, 3}, {"phases", 1, 3000, 3}, {"toggles", 16, 200, 16}} {
			if !livetest.Whole() && n != way%4 { // run each case in only one of the ways
				continue
			}
			p := startPatching(t, version, how, c.mode, 0, 5, c.threads, c.passes)
			values, sum, said := p.trace(t, Options{Options: o})
			got := p.finish(t)
			want := uint64(0)
			for site := range uint64(6) {
				all := c.phases * c.passes
				require.Equal(t, all, got[fmt.Sprintf("site %d passed", site)])
				from := uint64(0)
				if c.mode == "once" {
					from = all
				}
				want += (3 + site) * (all*from + all*(all-1)/2)
				slices.Sort(values[100+site])
				require.Len(t, slices.Compact(slices.Clone(values[100+site])), len(values[100+site]), "no exit is told twice")
				if uint64(len(values[100+site])) < all {
					require.True(t, slices.ContainsFunc(said, func(s string) bool {
						return strings.HasPrefix(s, fmt.Sprintf("the program has overwritten the breakpoint of record %d at f%d+0x", 100+site, site))
					}), "%s %d: %d of %d at site %d: %v", c.mode, c.passes, len(values[100+site]), all, site, said)
				}
				if int(site) < held {
					require.Len(t, values[100+site], int(all))
				}
			}
			require.Equal(t, want, got["sum"], c.mode)
			require.LessOrEqual(t, sum.Overwritten, uint64(6-held))
			if c.mode == "once" { // the patch is not removed
				require.EqualValues(t, 6-held, sum.Overwritten, said)
			}
		}
	})
}

// TestTracePatchedIsPutBack requires that a program that saves its code, patches it, and restores it after the trace has ended runs as without a
// trace.
func TestTracePatchedIsPutBack(t *testing.T) {
	if !livetest.DebugRegisters(t) {
		return // TestTracePatchedBreakpoints covers this case
	}
	eachPatchingWay(t, func(t *testing.T, version int, how string, o deopt.Options) {
		const n = 50
		p := startPatching(t, version, how, "saves", 0, 3, 1, n)
		ctx, cancel := context.WithTimeout(t.Context(), livetest.Patience)
		defer cancel()
		s, err := ptrace.Open(ctx, p.cmd.Process.Pid)
		require.NoError(t, err)
		p.goOn(t)
		o.Thread = 0
		sum, err := Run(ctx, s, Options{Options: o, Limit: 4 * n, Warn: func(text string) { t.Error(text) }}, func(x *Exited) error { return nil })
		require.NoError(t, errors.Join(err, s.Detach()))
		require.EqualValues(t, 4*n, sum.Exits)
		p.says(t, "patched")
		p.goOn(t)
		got := p.finish(t)
		for site := range 4 {
			require.EqualValues(t, 2*n, got[fmt.Sprintf("site %d passed", site)])
		}
		require.EqualValues(t, 4*n, got["called"])
	})
}

// TestTracePatchedBreakpointsAreSetAgain requires that a breakpoint that the program overwrites is set again in the new code.
func TestTracePatchedBreakpointsAreSetAgain(t *testing.T) {
	held := livetest.HeldPlaces(t)
	if held == 0 {
		return // the program overwrites some of six before all were hit
	}
	eachPatchingWay(t, func(t *testing.T, version int, how string, o deopt.Options) {
		p := startPatching(t, version, how, "until", 0, 5, 1, 0)
		told := map[uint64]bool{}
		values, sum, said := p.traceEach(t, Options{Options: o}, func(x *Exited) {
			before := len(told)
			if told[x.Point.Record] = true; before == 5 && len(told) == 6 {
				p.goOn(t)
			}
		}, func([]string) {})
		got := p.finish(t)
		require.EqualValues(t, 6-held, sum.Overwritten, said)
		for site := range uint64(6) {
			passed := got[fmt.Sprintf("site %d passed", site)]
			require.GreaterOrEqual(t, got["called"], 6*passed)
			k := uint64(len(values[100+site]))
			require.True(t, slices.Equal(upTo(passed)[passed-k:], values[100+site]), "%d of %d at site %d: %v", k, passed, site, said)
			require.True(t, int(site) >= held || k == passed)
		}
	})
}

// TestTracePatchedIsPutBackWithBreakpoints requires that code which the program restores, with a breakpoint in it, runs as the original code.
func TestTracePatchedIsPutBackWithBreakpoints(t *testing.T) {
	livetest.Slow(t)
	held := livetest.HeldPlaces(t)
	if held == 0 {
		return // the program overwrites some of six before all were hit
	}
	eachPatchingWay(t, func(t *testing.T, version int, how string, o deopt.Options) {
		const n = 100
		p := startPatching(t, version, how, "saves", 0, 5, 1, n)
		went := false
		values, sum, said := p.traceEach(t, Options{Options: o}, func(*Exited) {}, func(said []string) {
			if len(said) == 6-held && !went { // all breakpoints were set again
				went = true
				p.goOn(t)
			}
		})
		p.says(t, "patched")
		got := p.finish(t)
		want := uint64(0)
		for site := range uint64(6) {
			require.EqualValues(t, 2*n, got[fmt.Sprintf("site %d passed", site)])
			want += (3 + site) * n * (2*n - 1)
			k := len(values[100+site])
			if int(site) < held {
				require.Equal(t, 2*n, k)
			}
			require.True(t, k >= n && slices.Equal(upTo(2 * n)[2*n-k:], values[100+site]), "%d at site %d: %v", k, site, said)
		}
		require.Equal(t, want, got["sum"])
		require.EqualValues(t, 6*n, got["called"])
		require.EqualValues(t, 6-held, sum.Overwritten, said)
	})
}

// TestTracePatchedIsNotChanged requires that a program that compares its code with a saved copy finds no difference.
func TestTracePatchedIsNotChanged(t *testing.T) {
	livetest.Slow(t)
	if !livetest.DebugRegisters(t) {
		return // TestTracePatchedBreakpoints covers this case
	}
	eachPatchingWay(t, func(t *testing.T, version int, how string, o deopt.Options) {
		const n = 500
		p := startPatching(t, version, how, "checks", 0, 3, 1, n)
		values, _, said := p.trace(t, Options{Options: o})
		require.Empty(t, said)
		for site := range uint64(4) {
			require.True(t, slices.Equal(upTo(n), values[100+site]), "%d of %d at site %d: %v", len(values[100+site]), n, site, said)
		}
		require.Zero(t, p.finish(t)["changed"])
	})
}
