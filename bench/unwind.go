package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

const (
	warmRounds = 21
	warmWalks  = 100 // walks of a stack in one run
	warmLimit  = 2 * time.Microsecond

	// deepest is the minimum number of frames of deepProgram.
	deepest = 64
)

//go:embed testdata/deep.ll
var deepProgram string

// withoutTables replaces the attributes in deepProgram, so that LLVM writes no CFI for x86-64.
var withoutTables = strings.NewReplacer("{ uwtable }", "{ nounwind }")

// deepStack is a thread of a captured process, and the unwinder that walks its stack.
type deepStack struct {
	process   *livetest.Process
	target    *ptrace.Target
	unwinder  *unwind.Unwinder
	registers *machine.Registers
	frames    int
}

// deep runs deepProgram in lli of an LLVM release and captures the process.
func (b *bench) deep(version int, program, kind string) *deepStack {
	path := filepath.Join(b.TempDir(), "deep.ll")
	require.NoError(b, os.WriteFile(path, []byte(program), 0o644))
	p := livetest.Lli(b, version, path, kind)
	target, err := ptrace.Capture(p.PID, ptrace.Options{})
	require.NoError(b, err)
	b.Cleanup(target.Close)
	view, err := deopt.Frames(target, deopt.Options{Thread: p.PID})
	require.NoError(b, err)
	thread := view.Threads[0]
	require.True(b, thread.End.Complete, thread.End.Reason)
	require.GreaterOrEqual(b, len(thread.Frames), deepest)
	return &deepStack{p, target, view.Unwinder(), target.Threads()[0].Registers, len(thread.Frames)}
}

// unwinding measures the time per frame when the code on the stack has been examined before.
func (b *bench) unwinding() {
	b.section("Unwinding a stack whose code is known, per frame, %d runs of %d walks", warmRounds, warmWalks)
	cfi := b.deep(19, deepProgram, "mcjit")
	read := b.deep(19, withoutTables.Replace(deepProgram), "mcjit")
	alone := b.deep(14, withoutTables.Replace(deepProgram), "orc-jitlink")
	debugged := b.gdbWalks(cfi.process.PID, deepest)
	stacks := []*deepStack{cfi, read, alone}
	ours, again := make([]times, len(stacks)), make([]times, len(stacks))
	var once []func()
	for i, s := range stacks {
		before := s.walk(nil)
		once = append(once, func() { ours[i].add(s.perFrame(nil)) }, func() { again[i].add(s.perFrame(before)) })
	}
	runtime.GC()
	interleave(warmRounds, once...)
	var rows []row
	for i, what := range []string{
		"by CFI, lli-19 MCJIT",
		"JIT code without CFI, lli-19 MCJIT",
		"nor registered, lli-14 JITLink",
	} {
		r := row{what: fmt.Sprintf("%s, %d frames", what, stacks[i].frames), ours: perFrame(ours[i]),
			target: "at most 2 µs: " + verdict(ours[i].median() <= warmLimit)}
		if i == 0 {
			r.peer, r.theirs, r.ratio = "gdb, frame by frame", perFrame(debugged), ratio(ours[i].median(), debugged.median())
		}
		rows = append(rows, r, row{peer: "with the stack before at hand", ours: perFrame(again[i])})
		b.note("%s: %.1f allocations a frame, %.1f with the stack before at hand", what, stacks[i].allocations(nil), stacks[i].allocations(stacks[i].walk(nil)))
	}
	b.note("gdb finds %d frames of the stack without CFI, where reframe finds %d", len(b.gdbFrames(read.process.PID)), read.frames)
	b.print(rows...)
	b.corrupted(cfi, read, alone)
	for _, s := range stacks {
		s.process.Kill()
	}
}

func (s *deepStack) walk(before *unwind.Stack) *unwind.Stack {
	return s.unwinder.Walk(s.registers, before)
}

// perFrame unwinds the stack many times and returns the time per frame.
func (s *deepStack) perFrame(before *unwind.Stack) time.Duration {
	began := time.Now()
	for range warmWalks {
		s.walk(before)
	}
	return time.Since(began) / time.Duration(warmWalks*s.frames)
}

func (s *deepStack) allocations(before *unwind.Stack) float64 {
	return testing.AllocsPerRun(10, func() { s.walk(before) }) / float64(s.frames)
}

// perFrame formats a series of durations below a millisecond.
func perFrame(s times) string {
	lowest, highest := s[0], s[0]
	for _, d := range s {
		lowest, highest = min(lowest, d), max(highest, d)
	}
	return fmt.Sprintf("%s (%s to %s)", microseconds(s.median()), microseconds(lowest), microseconds(highest))
}

func microseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f µs", float64(d)/float64(time.Microsecond))
}
