package main

import (
	"fmt"

	"example.com/reframe/test/livetest"
)

const waitRounds = 10

// waits measures the time until a user sees the frames of an lli process.
func (b *bench) waits() {
	b.section("Wall time on an lli process (deoptimize.ll, MCJIT), start to end of the tool, %d runs", waitRounds)
	var rows []row
	for _, version := range []int{19, 22} {
		p := livetest.Lli(b, version, "deoptimize.ll", "mcjit")
		n := need{threads: 1, function: "sum_opt"}
		var ours, gdb, euStack times
		frames := func() { o, _ := b.runFrames(p.PID, n); ours.add(o.wall) }
		debugger := func() { gdb.add(b.runGDB(p.PID, n).wall) }
		stack := func() { euStack.add(b.runEUStack(p.PID, n).wall) }
		interleave(1, frames, debugger, stack) // loads the files into the page cache
		ours, gdb, euStack = nil, nil, nil
		interleave(waitRounds, frames, debugger, stack)
		p.Kill()
		debugged := against(fmt.Sprintf("frames, lli-%d", version), "gdb bt", gdb, ours)
		debugged.target = "at most 0.1 of gdb: " + verdict(10*ours.median() <= gdb.median())
		rows = append(rows, debugged, against("", "eu-stack, which stops at JIT code", euStack, ours))
	}
	b.print(rows...)
}
