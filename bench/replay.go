package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// The number of cores for each run. A slow tool gets fewer cores, and rates are compared.
const (
	replayRuns   = 5
	replayed     = 1000
	euStackCores = 40
	gdbCores     = 4
)

// replays measures how many cores each tool processes in a second, with one tool process for each processor. The other tools do less: they print a
// backtrace, without the values of any frame.
func (b *bench) replays() {
	b.section("Cores a second (deoptimize.ll, LLVM 19; %d cores, of eu-stack %d, of gdb %d), %d at once, %d runs", replayed, euStackCores, gdbCores, runtime.NumCPU(), replayRuns)
	var rows []row
	memory := int64(0)
	for _, c := range []struct {
		what string
		p    *livetest.Process
	}{
		{"MCJIT", livetest.Lli(b, 19, "deoptimize.ll", "mcjit")},
		{"ahead of time", livetest.Linked(b, 19, "deoptimize.ll", "-pie")},
	} {
		rows = append(rows, b.replayOf(c.what, c.p, &memory)...)
	}
	b.note("reframe had %s resident at the peak", mebibytes(memory))
	b.print(rows...)
}

// replayOf compares the tools on cores of one process.
func (b *bench) replayOf(what string, p *livetest.Process, memory *int64) []row {
	layout := livetest.Testdata(b, "programs", "deoptimize.layout.json")
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.PID))
	require.NoError(b, err)
	core := filepath.Join(b.TempDir(), "exit.core")
	known := []string{"--ir", livetest.IR(b, 19, "deoptimize.ll"), "--layout", layout}
	o, text := b.start(b.reframe, append([]string{"record", "-p", fmt.Sprint(p.PID), "-o", core}, known...)...)
	require.Zero(b, o.code, text)
	p.Kill()
	many := b.TempDir()
	for i := range replayed {
		require.NoError(b, os.Link(core, filepath.Join(many, fmt.Sprintf("core.%d", i))))
	}
	whole := bytes.Count(b.backtrace(exe, core), []byte("\n#"))
	var gdb, euStack, frames, resumed times
	seen := 0
	interleave(replayRuns,
		func() { gdb.add(b.eachCore(gdbCores, func() { b.backtrace(exe, core) })) },
		func() {
			euStack.add(b.eachCore(euStackCores, func() {
				o, text := b.start(b.euStack, "--core="+core, "-e", exe)
				require.Contains(b, string(o.output), "\n#0 ", text)
				seen = bytes.Count(o.output, []byte("\n#"))
			}))
		},
		func() { frames.add(b.replay(many, 0, memory)) },
		func() { resumed.add(b.replay(many, replayed, memory, known...)) },
	)
	if seen < whole-1 { // gdb shows the innermost frame twice
		b.note("%s: eu-stack shows %d of %d frames: it knows nothing of code that a JIT made", what, seen, whole-1)
	}
	return []row{coreRates("frames, "+what, "eu-stack --core", euStack, frames), coreRates("", "gdb -batch, bt", gdb, frames),
		coreRates("and one resumed", "gdb -batch, bt", gdb, resumed)}
}

// backtrace returns gdb's backtrace of a core.
func (b *bench) backtrace(exe, core string) []byte {
	o, text := b.start(b.gdb, "-nx", "-batch", exe, core, "-ex", "bt")
	require.Contains(b, string(o.output), "sum_opt", text)
	return o.output
}

// eachCore calls once n times, with one call at a time for each processor, and returns the elapsed time divided by n.
func (b *bench) eachCore(n int, once func()) time.Duration {
	work := make(chan struct{}, n)
	for range n {
		work <- struct{}{}
	}
	close(work)
	began := time.Now()
	var group sync.WaitGroup
	for range runtime.NumCPU() {
		group.Go(func() {
			for range work {
				once()
			}
		})
	}
	group.Wait()
	require.False(b, b.failed)
	return time.Since(began) / time.Duration(n)
}

// replay runs reframe on a folder of cores, and requires that the given number of them is resumed.
func (b *bench) replay(dir string, resumed int, memory *int64, args ...string) time.Duration {
	o, text := b.start(b.reframe, append([]string{"replay", "--cores", dir, "--json"}, args...)...)
	var last struct{ OK, Items int }
	lines := bytes.Split(bytes.TrimSpace(o.output), []byte("\n"))
	require.NoError(b, json.Unmarshal(lines[len(lines)-1], &last), text)
	require.Equal(b, replayed, last.Items, text)
	require.Equal(b, replayed, last.OK, text)
	require.Equal(b, resumed, bytes.Count(o.output, []byte(`"value":"332833500"`)))
	*memory = max(*memory, o.memory)
	return o.wall / replayed
}

// coreRates compares rates of cores a second, given the time of each core.
func coreRates(what, peer string, theirs, ours times) row {
	return row{what: what, peer: peer, theirs: coreRate(theirs), ours: coreRate(ours), ratio: ratio(theirs.median(), ours.median())}
}

// coreRate formats a series as cores a second: "median (smallest to largest)".
func coreRate(each times) string {
	per := func(d time.Duration) float64 { return 1 / d.Seconds() }
	return fmt.Sprintf("%.1f/s (%.1f to %.1f)", per(each.median()), per(slices.Max(each)), per(slices.Min(each)))
}
