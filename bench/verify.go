package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// verifyRuns is the number of times that each tool verifies each program.
const verifyRuns = 5

// beforeVariable is an environment variable with the path of a reframe built from an earlier commit, which is also measured.
const beforeVariable = "REFRAME_BEFORE"

// verifications measures how many exits are verified in a second, compared with how many are only reported and, if beforeVariable is set, with an
// earlier reframe.
func (b *bench) verifications() {
	b.section("Exits verified a second (LLVM 19, -O2), %d runs", verifyRuns)
	before := os.Getenv(beforeVariable)
	if before == "" {
		b.note("%s=PATH measures another reframe beside this one", beforeVariable)
	}
	for _, c := range []struct {
		what, program string
		rounds        int
		flags         []string
		old           bool // an earlier reframe has these flags
	}{
		{"memory.ll: much memory, a call that prints", "memory.ll", 200, nil, true},
		{"recursion.ll", "recursion.ll", 4, []string{"--limit", "300"}, true},
		{"tick.ll: a loop, each 50th", "tick.ll", 4, []string{"--every", "50"}, true},
		{"crossing.ll: ten native calls a round", "crossing.ll", 10, nil, true},
		{"baseline.ll, whose layout names the baseline to compare with from the entry on", "baseline.ll", 100, []string{"--layout", livetest.Testdata(b, "programs", "baseline.layout.json")}, true},
		{"crossing.ll, from the entry", "crossing.ll", 10, []string{"--from-entry"}, false},
	} {
		object, module := livetest.PICObject(b, 19, c.program, "-O2"), livetest.IR(b, 19, c.program)
		command := append([]string{"--"}, livetest.ObjectHostCommand(b, object, livetest.ObjectHostOptions{Rounds: c.rounds})...)
		var ours, theirs, traced times
		run := func(series *times, tool, verb string, flags []string) func() {
			return func() { series.add(b.exitsOf(tool, slices.Concat([]string{verb, "--ir", module}, flags, command))) }
		}
		contestants := []func(){run(&ours, b.reframe, "verify", c.flags), run(&traced, b.reframe, "trace", nil)}
		if before != "" && c.old {
			contestants = append(contestants, run(&theirs, before, "verify", c.flags))
		}
		interleave(verifyRuns, contestants...)
		b.print(rates(c.what, "only reported, by trace", traced, ours))
		if theirs != nil {
			b.print(rates("", before, theirs, ours))
		}
	}
}

// exitsOf returns the time of one exit in a verb, from its own summary.
func (b *bench) exitsOf(tool string, args []string) time.Duration {
	path := filepath.Join(b.TempDir(), "exits.json")
	_ = os.Remove(path)
	b.start(tool, append([]string{args[0], "--json", "-o", path}, args[1:]...)...)
	text, err := os.ReadFile(path)
	require.NoError(b, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	var summary struct {
		Exits   uint64
		Seconds float64
	}
	require.NoError(b, json.Unmarshal([]byte(lines[len(lines)-1]), &summary))
	require.Positive(b, summary.Exits)
	return time.Duration(summary.Seconds * float64(time.Second) / float64(summary.Exits))
}
