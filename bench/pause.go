package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

const pauseRounds = 20

// pauses measures for how long a process is stopped, by the process's own clock.
func (b *bench) pauses() {
	b.section("Pause of the target, largest gap between two readings of its own clock, %d runs", pauseRounds)
	// clock.c has a main thread in addition to the requested ones. Only one thread samples: more would compete for the processors, so that the
	// scheduler would be measured. If threads take turns, some are always running.
	rows := b.pausesOf("1 thread reads the clock", time.Millisecond, 1, 0, 0)
	rows = append(rows, b.pausesOf("64 threads, 1 reads it", 64*time.Millisecond/10+time.Millisecond, 1, 62, 0)...)
	rows = append(rows, b.pausesOf("16 threads read it in turn", hotPause, 0, 0, 16)...)
	rows = append(rows, b.ownPause(16), b.layoutPause())
	b.print(rows...)
}

// hotPause bounds the stop of a process that has more running threads than there are processors. Each thread needs a processor to stop, and that wait
// depends on the load.
const hotPause = 5 * time.Millisecond

// ownPause measures reframe's own part of a pause, without the wait for threads that had no processor to stop.
func (b *bench) ownPause(threads int) row {
	p := livetest.C(b, "clock.c", nil, "0", "0", fmt.Sprint(threads))
	defer p.Kill()
	var stopping, own times
	for range pauseRounds {
		t, err := ptrace.Capture(p.PID, ptrace.Options{})
		require.NoError(b, err)
		require.Len(b, t.Threads(), threads+1)
		stopping.add(t.Stopping)
		own.add(t.Pause - t.Stopping)
		t.Close()
	}
	return against("", "reframe, until all 16 had stopped", stopping, own).atMost(own, hotPause)
}

// layoutPause compares the pause with a layout that follows pointers with the pause without a layout, as reframe reports them.
func (b *bench) layoutPause() row {
	const more = 200 * time.Microsecond
	p := livetest.Lli(b, 19, "vmsimple.ll", "mcjit")
	defer p.Kill()
	pause := func(flags ...string) time.Duration {
		o, text := b.start(b.reframe, append([]string{"frames", "-p", fmt.Sprint(p.PID), "--ir", p.IR, "--json"}, flags...)...)
		var report framesReport
		require.NoError(b, json.Unmarshal(o.output, &report), text)
		return time.Duration(report.Target.PauseUS) * time.Microsecond
	}
	var without, with times
	interleave(pauseRounds, func() { without.add(pause()) }, func() { with.add(pause("--layout", "simple")) })
	r := against("a layout that follows pointers", "reframe without a layout", without, with)
	r.target = "at most 0.2 ms more: " + verdict(with.median()-without.median() <= more)
	return r
}

// pausesOf measures one process with the given numbers of threads that sample, sleep, and sample in turn.
func (b *bench) pausesOf(what string, limit time.Duration, samplers, sleepers, sharers int) []row {
	threads := 1 + samplers + sleepers + sharers
	p := livetest.C(b, "clock.c", nil, fmt.Sprint(samplers), fmt.Sprint(sleepers), fmt.Sprint(sharers))
	defer p.Kill()
	other := livetest.C(b, "nojit.c", nil)
	defer other.Kill()
	n := need{threads: threads}
	var ours, said, gdb, euStack, idle, busy times
	var wall time.Duration
	interleave(pauseRounds,
		func() {
			ours.add(b.gap(p, func() {
				o, pause := b.runFrames(p.PID, n)
				said.add(pause)
				wall = o.wall
			}))
		},
		func() { gdb.add(b.gap(p, func() { b.runGDB(p.PID, n) })) },
		func() { euStack.add(b.gap(p, func() { b.runEUStack(p.PID, n) })) },
		func() { idle.add(b.gap(p, func() { time.Sleep(wall) })) },
		func() { busy.add(b.gap(p, func() { b.runFrames(other.PID, need{threads: 1}) })) },
	)
	first := against(what, "gdb bt", gdb, ours).atMost(ours, limit)
	if ours.median() > limit && idle.median() > limit {
		first.target += ", and by the noise alone: the machine is busy"
	}
	// eu-stack attaches to one thread, unwinds it, detaches, and continues with the next. Its pauses are shorter, but the stacks are of different
	// moments.
	return []row{
		first,
		against("", "eu-stack, one thread at a time", euStack, ours),
		against("", "what reframe itself reports", said, ours),
		against("", "noise: nothing attached, same time", idle, ours),
		against("", "noise: reframe at another process", busy, ours),
	}
}

var gapLine = regexp.MustCompile(`gap (\d+)\n`)

// gap returns the largest gap that clock.c sees while f runs.
func (b *bench) gap(p *livetest.Process, f func()) time.Duration {
	b.askGap(p)
	f()
	return b.askGap(p)
}

// askGap asks clock.c for the largest gap since it was last asked.
func (b *bench) askGap(p *livetest.Process) time.Duration {
	seen := len(p.Output())
	p.Signal(b, syscall.SIGUSR1)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Microsecond) {
		if m := gapLine.FindStringSubmatch(p.Output()[seen:]); m != nil {
			ns, err := strconv.ParseInt(m[1], 10, 64)
			require.NoError(b, err)
			return time.Duration(ns)
		}
		require.True(b, p.Alive(), "clock.c has ended:\n%s", p.Output())
	}
	require.FailNow(b, "clock.c does not answer")
	return 0
}
