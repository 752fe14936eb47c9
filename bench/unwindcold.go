package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

const coldRounds = 15

// firstBacktrace measures the time of the first backtrace of a process that has libLLVM mapped: the whole program, from its start to its end.
//
// eu-stack stops at JIT-compiled code, after a few frames, before it reads libLLVM. Therefore its time for a stack with frames in libLLVM is measured
// on another process of the same lli, which waits for a module.
func (b *bench) firstBacktrace() {
	b.section("First backtrace of an lli process, start to end of the tool, %d runs", coldRounds)
	var rows []row
	for _, version := range []int{14, 19, 22} {
		lli := fmt.Sprintf("lli-%d", version)
		jit, waiting := livetest.Lli(b, version, "jit_pp.ll", "mcjit"), b.waitingLli(version)
		n := need{threads: 1, function: "work"}
		var ours, gdb, euStack, oursWaiting, euStackWaiting times
		once := []func(){
			func() { o, _ := b.runFrames(jit.PID, n); ours.add(o.wall) },
			func() { gdb.add(b.runGDB(jit.PID, n).wall) },
			func() { euStack.add(b.runEUStack(jit.PID, n).wall) },
			func() { o, _ := b.runFrames(waiting.PID, need{threads: 1, function: "main"}); oursWaiting.add(o.wall) },
			func() { euStackWaiting.add(b.runEUStack(waiting.PID, n).wall) },
		}
		interleave(1, once...) // loads the files into the page cache
		ours, gdb, euStack, oursWaiting, euStackWaiting = nil, nil, nil, nil, nil
		interleave(coldRounds, once...)
		found := b.framesFound(jit.PID)
		b.note("%s in JIT code: reframe finds %d frames, gdb %d, eu-stack %d; in libLLVM: reframe %d, eu-stack %d", lli,
			found, len(b.gdbFrames(jit.PID)), b.euStackFrames(jit.PID), b.framesFound(waiting.PID), b.euStackFrames(waiting.PID))
		jit.Kill()
		waiting.Kill()

		debugged := against(lli+", stopped in JIT code", "gdb bt", gdb, ours)
		debugged.target = "at most 0.05 of gdb: " + verdict(20*ours.median() <= gdb.median())
		native := against(lli+", stopped in libLLVM", "eu-stack", euStackWaiting, oursWaiting)
		native.target = "faster: " + verdict(oursWaiting.median() < euStackWaiting.median())
		same := against("", "eu-stack in libLLVM", euStackWaiting, ours)
		same.target = "faster: " + verdict(ours.median() < euStackWaiting.median())
		rows = append(rows, debugged, same, against("", "eu-stack, which stops at JIT code", euStack, ours), native)
	}
	b.print(rows...)
}

// waitingLli starts lli without a program, and returns when lli waits for one in libLLVM.
func (b *bench) waitingLli(version int) *livetest.Process {
	p := livetest.Program(b, "/bin/sh", "-c", `echo ready; exec "$0" -jit-kind=mcjit -`, livetest.LLVM(b, version, "lli"))
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if o, _ := b.start(b.euStack, "-p", fmt.Sprint(p.PID)); bytes.Contains(o.output, []byte("llvm::parseIRFile(")) {
			return p
		}
	}
	require.FailNow(b, "lli does not read its module")
	return nil
}

// framesFound returns the number of frames that reframe finds in a process with one thread.
func (b *bench) framesFound(pid int) int {
	o, text := b.start(b.reframe, "frames", "-p", fmt.Sprint(pid), "--json")
	var report framesReport
	require.NoError(b, json.Unmarshal(o.output, &report), text)
	return len(report.Threads[0].Frames)
}

func (b *bench) euStackFrames(pid int) int {
	return len(framesIn(b.runEUStack(pid, need{threads: 1}).output))
}
