package main

import (
	"fmt"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

const (
	objectRounds = 20
	gdbRounds    = 5

	compiled = 9000 // number of objects after which the JIT of a process continuously registers more
)

// coldCaches bounds the additional duration of a stop if 20,000 objects were read before it: some microseconds, because caches were evicted. That is
// 2.5 ns for each object; reading the smallest part of an object from another process takes 500.
const coldCaches = 50 * time.Microsecond

// jitHost is a process with many registered objects, and its measurements.
type jitHost struct {
	*livetest.Process

	wall, pause       times
	gdb               times
	memory, gdbMemory series[int64]
}

// objects measures processes with 10, 1,000, 9,000 and 20,000 registered objects, one of them on the stack, and one whose JIT registers more objects
// all the time.
func (b *bench) objects() {
	b.section("Registered JIT objects, %d runs, gdb %d", objectRounds, gdbRounds)
	few, some, many, quiet, compiling := b.manyObjects(10), b.manyObjects(1000), b.manyObjects(20000), b.manyObjects(compiled), &jitHost{}
	n := need{threads: 1, function: "jf"}
	measure := func(h *jitHost) func() {
		return func() {
			o, pause := b.runFrames(h.PID, n)
			h.wall.add(o.wall)
			h.pause.add(pause)
			h.memory.add(o.memory)
		}
	}
	debugger := func(h *jitHost) func() {
		return func() {
			o := b.runGDB(h.PID, n)
			h.gdb.add(o.wall)
			h.gdbMemory.add(o.memory)
		}
	}
	interleave(objectRounds, measure(few), measure(some), measure(many), measure(quiet), func() {
		compiling.Process = livetest.ManyObjects(b, compiled, "compile") // a new process each time, because its list grows
		measure(compiling)()
		compiling.Kill()
	})
	interleave(gdbRounds, debugger(few), debugger(some))
	// This run is the last, because a gdb that is killed leaves the process in its current state.
	last := b.runGDB(many.PID, n)
	for _, h := range []*jitHost{few, some, many, quiet} {
		h.Kill()
	}

	pauseRow := against("pause, 20,000 objects", "reframe, 10 objects", few.pause, many.pause)
	pauseRow.target = "at most 0.05 ms more: " + verdict(many.pause.median()-few.pause.median() <= coldCaches)
	compilingRow := against("pause, 9,000 objects, compiling", "reframe, 9,000 objects", quiet.pause, compiling.pause)
	compilingRow.target = "less than 1 ms: " + verdict(compiling.pause.median() < time.Millisecond)
	most := row{what: "frames, 20,000 objects", peer: "gdb bt", theirs: duration(last.wall), ours: spread(many.wall), ratio: ratio(many.wall.median(), last.wall)}
	if last.over {
		most.theirs, most.ratio = fmt.Sprintf("over %.0f s", patience.Seconds()), "below "+most.ratio
	}
	b.print(
		pauseRow,
		against("pause, 1,000 objects", "reframe, 10 objects", few.pause, some.pause),
		compilingRow,
		against("frames, 10 objects", "gdb bt", few.gdb, few.wall),
		against("frames, 1,000 objects", "gdb bt", some.gdb, some.wall),
		most,
		against("", "reframe, 10 objects", few.wall, many.wall),
		against("", "reframe, 1,000 objects", some.wall, many.wall),
		b.memoryRow("memory, 1,000 objects", "gdb bt", some.gdbMemory, some.memory),
		b.memoryRow("memory, 20,000 objects", "gdb bt, 1,000 objects", some.gdbMemory, many.memory),
		b.memoryRow("memory, 9,000 objects, compiling", "reframe, 9,000 objects", quiet.memory, compiling.memory),
	)
}

func (b *bench) manyObjects(n int) *jitHost {
	return &jitHost{Process: livetest.ManyObjects(b, n)}
}

// memoryRow compares peaks of resident memory.
func (b *bench) memoryRow(what, peer string, theirs, ours series[int64]) row {
	var self syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &self))
	// A child's peak includes the memory of this program before exec (Linux, fs/exec.c), so a smaller value is only a bound.
	bounded := func(n int64) string {
		if n <= int64(self.Maxrss)<<10 {
			return "at most " + mebibytes(n)
		}
		return mebibytes(n)
	}
	return row{what: what, peer: peer, theirs: bounded(theirs.median()), ours: bounded(ours.median()),
		ratio: ratio(ours.median(), theirs.median())}
}
