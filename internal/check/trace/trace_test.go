package trace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/vm/condition"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// line holds the parts of an exit that a test keeps.
type line struct {
	number   uint64
	tid      int
	function string
	offset   uint64
	record   frame.Record
	slots    []frame.Slot
	stops    bool
	frames   []string
}

// traceAll traces a process until the process or the trace ends, and detaches.
func traceAll(t *testing.T, pid int, begin func(), o Options) ([]line, *Summary, []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), livetest.Patience)
	defer cancel()
	s, err := ptrace.Open(ctx, pid)
	require.NoError(t, err)
	var lines []line
	var said []string
	o.Warn = func(text string) { said = append(said, text) }
	begin() // the process waits for its input until the session resumes it
	sum, err := Run(ctx, s, o, func(x *Exited) error {
		l := line{number: x.Number, tid: x.Thread.ID, stops: x.Stops}
		if f := x.Frame; f != nil {
			l.function, l.slots = f.Function, f.Slots
			if f.Offset != nil {
				l.offset = *f.Offset
			}
			if f.Record != nil {
				l.record = *f.Record
			}
		}
		for _, f := range x.Frames {
			l.frames = append(l.frames, f.Function)
		}
		lines = append(lines, l)
		return nil
	})
	require.NoError(t, errors.Join(err, s.Detach()))
	return lines, sum, said
}

// tick is the loop of tick.ll: the values of its stackmap at each iteration.
func tick(seed uint64) (rows [][4]uint64) {
	acc, x, y := seed, uint64(12345), uint64(1)
	for i := uint64(0); i < 1000; i++ {
		rows = append(rows, [4]uint64{i, acc, x, y})
		next := acc*31 + x
		x ^= acc >> 7
		y = (y + i) ^ next
		acc = next
	}
	return rows
}

// ended waits for the object host to end, and returns its output.
func ended(t *testing.T, p *livetest.Process) string {
	t.Helper()
	require.NoError(t, p.Wait())
	return strings.ReplaceAll(p.Output(), "\r", "")
}

// TestTraceEveryExit requires that each exit of each thread is reported once, in order, with the values of the loop at that time, and that the
// program computes the same as without a trace.
func TestTraceEveryExit(t *testing.T) {
	livetest.Slow(t)
	for _, c := range []struct {
		version int
		level   string
		host    livetest.ObjectHostOptions
	}{
		{19, "-O2", livetest.ObjectHostOptions{Threads: 1, Rounds: 20}},
		{14, "-O0", livetest.ObjectHostOptions{Threads: 3, Rounds: 3}},
		{22, "-O3", livetest.ObjectHostOptions{Threads: 16, Rounds: 1}},
		{19, "-O1", livetest.ObjectHostOptions{Threads: 2, Rounds: 6, Unload: 2}},
		{19, "-O2", livetest.ObjectHostOptions{Threads: 2, Rounds: 2, Signals: true}},
	} {
		if !livetest.Whole() { // a round has a thousand exits
			c.host.Threads, c.host.Rounds = min(c.host.Threads, 6), min(c.host.Rounds, 3)
		}
		t.Run(fmt.Sprintf("LLVM %d %s %+v", c.version, c.level, c.host), func(t *testing.T) {
			p, begin, o := frametest.Hosted(t, c.version, "tick.ll", c.level, c.host)
			lines, sum, said := traceAll(t, p.PID, begin, Options{Options: o})
			require.Empty(t, said)
			total := uint64(1000 * c.host.Threads * c.host.Rounds)
			require.EqualValues(t, total, len(lines))
			require.Equal(t, End{Kind: EndExited}, sum.End)
			require.Equal(t, []uint64{total, total, 0}, []uint64{sum.Exits, sum.Reported, sum.Unavailable})
			require.Equal(t, []FunctionCount{{Function: "tick", Count: total}}, sum.Functions)
			numbers := map[uint64]bool{}
			got := map[int][][4]uint64{}
			for _, l := range lines {
				require.Equal(t, frame.Record{ID: 1, Site: "stackmap", Offset: l.offset, Moment: frame.Before}, l.record)
				numbers[l.number] = true
				var row [4]uint64
				for n, s := range l.slots {
					require.Equal(t, []string{"%i", "%acc", "%x", "%y"}[n], s.Name)
					v, err := strconv.ParseInt(s.Value, 10, 64)
					require.NoError(t, err)
					row[n] = uint64(v)
				}
				got[l.tid] = append(got[l.tid], row)
			}
			require.Len(t, numbers, len(lines))
			require.True(t, numbers[1] && numbers[total])
			// Thread k calls entry(r * THREADS + k) in round r.
			var runs, want [][][4]uint64
			for _, rows := range got {
				for len(rows) > 0 {
					runs = append(runs, rows[:1000])
					rows = rows[1000:]
				}
			}
			for n := range c.host.Threads * c.host.Rounds {
				want = append(want, tick(uint64(n)))
			}
			require.ElementsMatch(t, want, runs)
			checksum, _ := livetest.CVersion(t, "tick.ll", c.host)
			require.Contains(t, ended(t, p), checksum+"\n")
		})
	}
}

// TestTraceDeoptimize covers a call of @llvm.experimental.deoptimize, in a process that waits before it and in one whose code is just being compiled.
func TestTraceDeoptimize(t *testing.T) {
	p, begin, o := frametest.Hosted(t, 19, "guards.ll", "-O2", livetest.ObjectHostOptions{Rounds: 40})
	described, err := layout.Read(livetest.Testdata(t, "programs", "guards.layout.json"))
	require.NoError(t, err)
	o.Layouts = []*layout.Layout{described}
	lines, sum, said := traceAll(t, p.PID, begin, Options{Options: o})
	require.Empty(t, said)
	require.NotEmpty(t, lines)
	require.EqualValues(t, len(lines), sum.Exits)
	for _, l := range lines {
		require.Equal(t, "deoptimize", l.record.Site)
		require.Equal(t, frame.Before, l.record.Moment)
		for _, s := range l.slots {
			require.Equal(t, frame.OK, s.Status, s.Reason)
		}
	}
	checksum, _ := livetest.CVersion(t, "guards.ll", livetest.ObjectHostOptions{Rounds: 40})
	require.Contains(t, ended(t, p), checksum+"\n")

	// The same exits are selected by the function that they call, and must have the same values. The frame then waits for the call.
	p, begin, _ = frametest.Hosted(t, 19, "guards.ll", "-O2", livetest.ObjectHostOptions{Rounds: 40})
	calls, sum, said := traceAll(t, p.PID, begin, Options{Options: o, At: []*names.Pattern{frametest.Pattern(names.Exact, "__llvm_deoptimize")}})
	require.Empty(t, said)
	require.EqualValues(t, len(lines), sum.Exits)
	require.Len(t, calls, len(lines))
	for n := range calls {
		require.Equal(t, frame.InCall, calls[n].record.Moment)
		require.Equal(t, lines[n].function, calls[n].function)
		require.Greater(t, calls[n].offset, lines[n].offset)
		require.Equal(t, valuesOf(lines[n]), valuesOf(calls[n]))
	}
}

func valuesOf(l line) (out []string) {
	for _, s := range l.slots {
		out = append(out, s.Name+"="+s.Value)
	}
	return out
}

// TestTraceChooses requires that the selected hits are reported, and that all are counted.
func TestTraceChooses(t *testing.T) {
	livetest.Slow(t)
	host := livetest.ObjectHostOptions{Threads: 1, Rounds: 2}
	for name, c := range map[string]struct {
		options Options
		numbers []uint64
		exits   uint64
		end     string
	}{
		"count":              {Options{Quiet: true}, nil, 2000, EndExited},
		"count, with limit":  {Options{Quiet: true, Limit: 1234}, nil, 1234, EndLimit},
		"every":              {Options{Every: 600}, []uint64{600, 1200, 1800}, 2000, EndExited},
		"limit":              {Options{Limit: 3}, []uint64{1, 2, 3}, 3, EndLimit},
		"every, with limit":  {Options{Every: 10, Limit: 2}, []uint64{10, 20}, 20, EndLimit},
		"stop":               {Options{Every: 1000, Stop: stopAt(t, "%i == 25 && %x > 0")}, []uint64{26}, 26, EndStopped},
		"stop, never":        {Options{Every: 1000, Stop: stopAt(t, "%i == 2500")}, nil, 2000, EndExited},
		"stop, before limit": {Options{Limit: 2, Stop: stopAt(t, "%i == 25")}, nil, 2, EndLimit},
		"log":                {Options{Every: 10, Log: true, Stop: stopAt(t, "%i == 25")}, []uint64{10, 20, 26}, 26, EndStopped},
		"log, never":         {Options{Every: 1000, Log: true, Stop: stopAt(t, "%i == 2500")}, []uint64{1000, 2000}, 2000, EndExited},
		"log, before limit":  {Options{Limit: 2, Log: true, Stop: stopAt(t, "%i == 25")}, []uint64{1, 2}, 2, EndLimit},
		"stop, counted":      {Options{Quiet: true, Stop: stopAt(t, "%i == 5")}, []uint64{6}, 6, EndStopped},
		"main thread":        {Options{Options: deopt.Options{Thread: -1}}, nil, 0, EndExited}, // the main thread only waits for the other one
	} {
		t.Run(name, func(t *testing.T) {
			p, begin, o := frametest.Hosted(t, 19, "tick.ll", "-O2", host)
			if c.options.Thread != 0 {
				o.Thread = p.PID
			}
			c.options.Options = o
			lines, sum, said := traceAll(t, p.PID, begin, c.options)
			require.Empty(t, said)
			var numbers []uint64
			for _, l := range lines {
				numbers = append(numbers, l.number)
			}
			require.Equal(t, c.numbers, numbers)
			require.Equal(t, c.exits, sum.Exits)
			require.EqualValues(t, len(lines), sum.Reported)
			require.Equal(t, c.end, sum.End.Kind)
			if c.end == EndStopped {
				last := lines[len(lines)-1]
				require.True(t, last.stops)
				require.Equal(t, []string{"tick", "entry", "call"}, last.frames[:3])
			}
			checksum, _ := livetest.CVersion(t, "tick.ll", host)
			require.Contains(t, ended(t, p), checksum+"\n")
		})
	}
}

func stopAt(t *testing.T, text string) *condition.Condition {
	t.Helper()
	c, err := condition.Parse(text)
	require.NoError(t, err)
	return c
}

// TestTraceFull requires the frames of a recursion, although parts of the previous exit's stack are reused.
func TestTraceFull(t *testing.T) {
	p, begin, o := frametest.Hosted(t, 19, "recursion.ll", "-O2", livetest.ObjectHostOptions{Rounds: 4})
	o.Thread = 0
	lines, sum, said := traceAll(t, p.PID, begin, Options{Options: o, Full: true})
	require.Empty(t, said)
	require.EqualValues(t, len(lines), sum.Exits)
	deepest := 0
	for _, l := range lines {
		depth := 0
		for depth < len(l.frames) && l.frames[depth] == "tree" {
			depth++
		}
		deepest = max(deepest, depth)
		require.Equal(t, []string{"entry", "call", "rounds_of", "work"}, l.frames[depth:depth+4], "%v", l.frames)
	}
	require.Greater(t, deepest, 2)
	// Without all frames, the values must be the same.
	p, begin, _ = frametest.Hosted(t, 19, "recursion.ll", "-O2", livetest.ObjectHostOptions{Rounds: 4})
	brief, _, _ := traceAll(t, p.PID, begin, Options{Options: o})
	require.Len(t, brief, len(lines))
	for n := range brief {
		require.Equal(t, valuesOf(lines[n]), valuesOf(brief[n]))
	}
}

// TestTraceValuesComeWithTheHit requires that values of many types, in statepoints and vector registers, are those of a stopped process.
func TestTraceValuesComeWithTheHit(t *testing.T) {
	livetest.Slow(t)
	for _, program := range []string{"state.ll", "memory.ll", "floats.ll", "patch.ll"} {
		for _, level := range livetest.ShareOf([]string{"-O0", "-O2"}, "values come with the hit", program) {
			t.Run(program+level, func(t *testing.T) {
				run := func(full bool) (out []string) {
					p, begin, o := frametest.Hosted(t, 19, program, level, livetest.ObjectHostOptions{Rounds: 5})
					lines, sum, said := traceAll(t, p.PID, begin, Options{Options: o, Full: full})
					require.Empty(t, said)
					require.NotZero(t, sum.Exits)
					for _, l := range lines {
						text := fmt.Sprintf("%s+%d %+v", l.function, l.offset, l.record)
						for _, s := range l.slots {
							value := s.Value
							if s.Type.Kind == frame.Pointer || s.Type.IsZero() {
								value = "" // the value differs from run to run
							}
							text += fmt.Sprintf(" %s=%s%s", s.Name, value, s.Reason)
						}
						out = append(out, text)
					}
					return out
				}
				require.Equal(t, run(true), run(false))
			})
		}
	}
}

// TestTraceNothing requires an error for a process without places to watch.
func TestTraceNothing(t *testing.T) {
	trace := func(pid int, o Options) (said []string, err error) {
		s, err := ptrace.Open(t.Context(), pid)
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Detach()) }()
		ctx, cancel := context.WithTimeout(t.Context(), livetest.Patience)
		defer cancel()
		o.Warn = func(text string) {
			said = append(said, text)
			cancel()
		}
		_, err = Run(ctx, s, o, func(*Exited) error { return nil })
		return said, err
	}
	p := livetest.C(t, "nojit.c", nil)
	_, err := trace(p.PID, Options{})
	require.ErrorContains(t, err, "no stack map")
	_, err = trace(p.PID, Options{At: []*names.Pattern{frametest.Pattern(names.Exact, "no_such_function")}})
	require.ErrorContains(t, err, "has no function no_such_function; use --wait to wait for one")
	_, err = trace(p.PID, Options{Options: deopt.Options{Thread: 1}, Wait: true})
	require.ErrorContains(t, err, fmt.Sprintf("process %d has no thread 1; it has %d ", p.PID, p.PID))
	// A JIT may still register code.
	l := livetest.Lli(t, 19, "stop_at.ll", "mcjit")
	said, err := trace(l.PID, Options{ExitFilter: ExitFilter{Records: []uint64{1}}})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []string{fmt.Sprintf("process %d: no record is selected (1 known); waiting for objects that its JIT registers", l.PID)}, said)
}

// TestTraceOtherModule requires that trace uses no names of a module other than the compiled one, and still reports the exits.
func TestTraceOtherModule(t *testing.T) {
	livetest.Slow(t)
	p, begin, _ := frametest.Hosted(t, 19, "tick.ll", "-O2", livetest.ObjectHostOptions{})
	text := `declare void @llvm.experimental.stackmap(i64, i32, ...)
define i64 @tick(i64 %a) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %a)
  ret i64 %a
}
define i64 @entry(i64 %a) {
  ret i64 %a
}`
	m, err := ir.Parse("other.ll", []byte(text))
	require.NoError(t, err)
	lines, _, said := traceAll(t, p.PID, begin, Options{Options: deopt.Options{Modules: []*ir.Module{m}}})
	require.Equal(t, []string{"other.ll is not what was compiled: record 1 of @tick has 4 live values, but line 3 of the module has 1"}, said)
	require.Len(t, lines, 1000)
	require.Equal(t, "loc0", lines[0].slots[0].Name)
}

// TestTraceWhatIsRegisteredLater requires the exit of an object that is registered during the trace, by each of LLVM's linkers.
func TestTraceWhatIsRegisteredLater(t *testing.T) {
	livetest.Slow(t)
	for _, version := range []int{16, 19, 22} {
		for _, kind := range []string{"mcjit", "orc", "orc-lazy"} {
			t.Run(fmt.Sprintf("lli-%d %s", version, kind), func(t *testing.T) {
				module := livetest.IR(t, version, "deoptimize.ll")
				ctx, cancel := context.WithTimeout(t.Context(), livetest.Patience)
				defer cancel()
				s, err := ptrace.Launch(ctx, append(livetest.LliWords(t, version), "-jit-kind="+kind, module))
				require.NoError(t, err)
				defer func() {
					require.NoError(t, syscall.Kill(s.PID(), syscall.SIGKILL))
					require.NoError(t, s.Detach())
				}()
				m, err := ir.ParseFile(module)
				require.NoError(t, err)
				var values []string
				o := Options{Options: deopt.Options{Modules: []*ir.Module{m}}, Limit: 1, Wait: true, Warn: func(text string) { t.Error(text) }}
				sum, err := Run(ctx, s, o, func(x *Exited) error {
					for _, s := range x.Frame.Slots {
						values = append(values, s.Name+"="+s.Value)
					}
					return nil
				})
				require.NoError(t, err)
				require.Equal(t, EndLimit, sum.End.Kind)
				require.Equal(t, []string{"=3", "%i=26", "%acc=5525", "%n=1000"}, values)
			})
		}
	}
}

// TestTraceAheadOfTime covers ahead-of-time code, which the dynamic linker relocates after the start of the trace.
func TestTraceAheadOfTime(t *testing.T) {
	for _, flags := range [][]string{nil, {"-no-pie"}, {"-static"}, {"-fuse-ld=lld", "-Wl,-z,notext"}, {"-fuse-ld=lld", "-no-pie"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "chain")
			require.NoError(t, os.Symlink(livetest.Tool(t, "ld.lld-19"), filepath.Join(dir, "ld.lld")))
			link := exec.Command(livetest.Tool(t, "gcc"), append(flags, "-B", dir, "-o", path, livetest.PICObject(t, 19, "chain.ll"))...)
			out, err := link.CombinedOutput()
			require.NoError(t, err, "%s\n%s", link, out)
			ctx, cancel := context.WithTimeout(t.Context(), livetest.Patience)
			defer cancel()
			s, err := ptrace.Launch(ctx, []string{path})
			require.NoError(t, err)
			defer func() {
				require.NoError(t, syscall.Kill(s.PID(), syscall.SIGKILL))
				require.NoError(t, s.Detach())
			}()
			var exits []string
			o := Options{Limit: 5, Wait: true, Warn: func(text string) { t.Error(text) }}
			_, err = Run(ctx, s, o, func(x *Exited) error {
				text := fmt.Sprintf("%s %d", x.Frame.Function, x.Frame.Record.ID)
				for _, s := range x.Frame.Slots {
					text += " " + string(s.Hex)
				}
				exits = append(exits, text)
				return nil
			})
			require.NoError(t, err)
			require.Equal(t, []string{"main 3", "f 2 0x3", "f 2 0x2", "f 2 0x1", "f 1 0x0"}, exits)
		})
	}
}
