package deopt_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/tabwriter"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// stackProgram is a process to unwind, with the minimum that its stacks must contain: an empty result must not pass as agreement.
type stackProgram struct {
	name    string
	threads int
	frames  int // minimum number of frames that agree
	signals int // minimum number of signal frames that agree; a JVM may add frames of its own handlers
	start   func(t *testing.T) *livetest.Process
	symbols func(t *testing.T) string // file with debug information, if not the program itself
	again   bool                      // similar to another program, so it runs only with FIDELITY=all
}

var stackPrograms = []stackProgram{
	{name: "lli-14 mcjit", threads: 1, frames: 17, start: jitted(14, "mcjit")},
	{name: "lli-14 orc", threads: 1, frames: 17, start: jitted(14, "orc"), again: true},
	{name: "lli-19 mcjit", threads: 1, frames: 17, start: jitted(19, "mcjit"), again: true},
	{name: "lli-19 orc", threads: 1, frames: 17, start: jitted(19, "orc")},
	{name: "lli-22 mcjit", threads: 1, frames: 17, start: jitted(22, "mcjit"), again: true},
	{name: "lli-22 orc", threads: 1, frames: 16, start: jitted(22, "orc")},
	{name: "python3", threads: 2, frames: 50, start: script("python3", 0, "deep.py")},
	{name: "node, compiled code", threads: 7, frames: 40, start: script("node", 0, "hot.js")},
	{name: "node, idle", threads: 7, frames: 40, start: script("node", 0, "idle.js")},
	{name: "java", threads: 15, frames: 120, start: java},
	{name: "gdb", threads: 1, frames: 9, start: func(t *testing.T) *livetest.Process {
		return quiet(t, 0, livetest.Tool(t, "gdb"), "-nx", "-q", "-ex", `echo ready\n`)
	}},
	{name: "handler on another stack", threads: 1, frames: 25, signals: 1, start: cStacks("altstack", 0)},
	{name: "handler in a system call", threads: 1, frames: 20, signals: 1, start: cStacks("handler", 0)},
	{name: "nanosleep", threads: 1, frames: 17, start: cStacks("nanosleep", 0)},
	{name: "vdso", threads: 1, frames: 5, start: inVDSO},
	{name: "32 threads", threads: 32, frames: 600, start: cStacks("threads", 1)},
	{name: "C++ exceptions", threads: 6, frames: 60, start: func(t *testing.T) *livetest.Process {
		return quiet(t, 0, livetest.CXXBinary(t, programSource(t, "exceptions.cc"), "-rdynamic"))
	}},
	{name: "go", threads: 5, frames: 40, start: func(t *testing.T) *livetest.Process {
		return quiet(t, 1, livetest.GoBinary(t, programSource(t, "goprogram")))
	}},
	// The program of the previous case, linked without DWARF and so without CFI. gdb reads the CFI from the file of the previous case.
	{name: "go without debug information", threads: 5, frames: 40, start: func(t *testing.T) *livetest.Process {
		return quiet(t, 1, livetest.GoBinary(t, programSource(t, "goprogram"), "-ldflags=-w"))
	}, symbols: func(t *testing.T) string { return livetest.GoBinary(t, programSource(t, "goprogram")) }},
}

// programSource returns the absolute path of a source file in testdata.
func programSource(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", "gdbstack", name))
	require.NoError(t, err)
	return path
}

// quiet starts a program and waits until all threads, except busy ones, wait in the kernel.
func quiet(t *testing.T, busy int, path string, args ...string) *livetest.Process {
	t.Helper()
	p := livetest.Program(t, path, args...)
	p.Quiet(t, busy)
	return p
}

func jitted(version int, kind string) func(t *testing.T) *livetest.Process {
	return func(t *testing.T) *livetest.Process {
		return livetest.Lli(t, version, programSource(t, "stack.ll"), kind)
	}
}

func script(tool string, busy int, name string) func(t *testing.T) *livetest.Process {
	return func(t *testing.T) *livetest.Process {
		return quiet(t, busy, livetest.Tool(t, tool), programSource(t, name))
	}
}

// java runs Java without the file of counters that every JVM creates in /tmp regardless of TMPDIR.
func java(t *testing.T) *livetest.Process {
	return quiet(t, 1, livetest.Tool(t, "java"), "-XX:-UsePerfData", programSource(t, "Deep.java"))
}

func cStacks(way string, busy int) func(t *testing.T) *livetest.Process {
	return func(t *testing.T) *livetest.Process { return quiet(t, busy, stacksProgram(t), way) }
}

func stacksProgram(t *testing.T) string {
	t.Helper()
	return livetest.CBinary(t, filepath.Join("..", "deopt", "testdata", "gdbstack", "stacks.c"))
}

// inVDSO returns a process with a thread in the vDSO, the shared object that the kernel maps into every process.
func inVDSO(t *testing.T) *livetest.Process {
	t.Helper()
	p := livetest.Program(t, stacksProgram(t), "vdso")
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.PID))
	require.NoError(t, err)
	var start, end uint64
	for line := range strings.Lines(string(text)) {
		if strings.HasSuffix(line, "[vdso]\n") {
			_, err := fmt.Sscanf(line, "%x-%x", &start, &end)
			require.NoError(t, err)
		}
	}
	require.NotZero(t, end)
	for range 1000 {
		p.Freeze(t)
		if pc := p.StoppedAt(t); pc >= start && pc < end {
			return p
		}
		p.Signal(t, syscall.SIGCONT)
	}
	require.FailNow(t, "it is never in the vdso")
	return nil
}

// tally holds the results for one program.
type tally struct {
	program                  string
	threads                  int
	ours, theirs             int // frames
	agree, explained, beyond int // numbers of frames: found by both, missing here for a listed reason, found only here
	equal, differ, unknown   int // registers of the frames that agree
}

func (s tally) plus(o tally) tally {
	return tally{s.program, s.threads + o.threads, s.ours + o.ours, s.theirs + o.theirs, s.agree + o.agree, s.explained + o.explained,
		s.beyond + o.beyond, s.equal + o.equal, s.differ + o.differ, s.unknown + o.unknown}
}

// TestStacksAgainstGDB unwinds every thread of many kinds of processes here and in gdb at the same moment. It compares all frames: pc, CFA, and
// callee-saved registers. The table of disagreements must explain every difference.
func TestStacksAgainstGDB(t *testing.T) {
	livetest.Slow(t)
	var mu sync.Mutex
	results, reasons, lost := map[string]tally{}, map[string]int{}, map[string]int{}
	t.Run("programs", func(t *testing.T) {
		for _, program := range stackPrograms {
			if program.again && !livetest.Whole() {
				continue
			}
			t.Run(program.name, func(t *testing.T) {
				var symbols []string
				if program.symbols != nil { // build first, because a build replaces the file that another process may be running
					symbols = append(symbols, program.symbols(t))
				}
				t.Parallel()
				pairs := captured(t, program.start(t), symbols...)
				mu.Lock()
				defer mu.Unlock()
				results[program.name] = program.check(t, pairs, reasons, lost)
			})
		}
	})
	report(t, results, reasons, lost)
}

// check counts the results and fails on unexplained differences. It adds the uses of each explanation to reasons, and the reasons for unavailable
// registers to lost.
func (program *stackProgram) check(t *testing.T, pairs []*stackPair, reasons, lost map[string]int) tally {
	sum := tally{program: program.name, threads: len(pairs)}
	signals := 0
	for _, s := range pairs {
		sum.ours += len(s.ours)
		sum.theirs += len(s.theirs.frames)
		sum.agree += len(s.both)
		sum.equal += s.equal
		sum.differ += len(s.registers)
		for why, n := range s.lost {
			sum.unknown += n
			lost[why] += n
		}
		for _, at := range s.both {
			if s.ours[at[0]].Physical().Signal {
				signals++
			}
		}
		for _, g := range s.gaps {
			why := g.explained(program.name)
			if why == "" {
				t.Errorf("not explained: %v", g)
				continue
			}
			reasons[why] += g.missing
			sum.explained += g.missing
			sum.beyond += g.extra
		}
		if len(s.gaps) == 0 && !s.end.Complete {
			t.Errorf("thread %d: %s", s.tid, s.end.Reason)
		}
		for _, r := range s.registers {
			why := r.explained(program.name)
			if why == "" {
				t.Errorf("not explained: %v", r)
				continue
			}
			reasons[why]++
		}
	}
	require.GreaterOrEqual(t, sum.threads, program.threads)
	require.GreaterOrEqual(t, sum.agree, program.frames)
	require.GreaterOrEqual(t, signals, program.signals)
	return sum
}

// report prints the table.
func report(t *testing.T, results map[string]tally, reasons, lost map[string]int) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "program\tthreads\tgdb's frames\tframes here\tagree\texplained\tonly here\tshare\tregisters: equal\tgdb wrong\tunavailable\t")
	total := tally{program: "all"}
	line := func(s tally) {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%.1f %%\t%d\t%d\t%d\t\n", s.program, s.threads, s.theirs, s.ours, s.agree, s.explained, s.beyond,
			100*float64(s.agree)/float64(max(1, s.theirs)), s.equal, s.differ, s.unknown)
	}
	for _, program := range stackPrograms {
		if s, ok := results[program.name]; ok {
			line(s)
			total = total.plus(s)
		}
	}
	line(total)
	require.NoError(t, w.Flush())
	for title, counts := range map[string]map[string]int{"explained": reasons, "unavailable": lost} {
		fmt.Fprintf(&b, "%s:\n", title)
		for _, why := range slices.SortedFunc(maps.Keys(counts), func(x, y string) int { return counts[y] - counts[x] }) {
			fmt.Fprintf(&b, "%7d  %s\n", counts[why], why)
		}
	}
	t.Log("\n" + b.String())
}
