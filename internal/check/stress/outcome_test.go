package stress

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/livetest"
)

// took returns the output of a stream to which a text was written.
func took(t *testing.T, text string) Output {
	t.Helper()
	s, err := newStream()
	require.NoError(t, err)
	_, err = s.write.WriteString(text)
	require.NoError(t, err)
	return s.finish()
}

// TestStreamDifference requires that a difference in a stream is shown by its line if that was kept, and is found also in a part that was not kept.
func TestStreamDifference(t *testing.T) {
	long := strings.Repeat("x", maxKept)
	for _, c := range []struct {
		a, b string
		want Difference
	}{
		{"one\ntwo\nthree\n", "one\ntwo!\nthree\n", Difference{Untouched: "two", Stressed: "two!", Offset: new(uint64(7)), Line: 2}},
		{"one\n", "one\ntwo\n", Difference{Untouched: "", Stressed: "two", Offset: new(uint64(4)), Line: 2}},
		{"one\ntwo\n", "", Difference{Untouched: "one", Stressed: "", Offset: new(uint64(0)), Line: 1}},
		{long[:200] + "a", long[:200] + "b", Difference{Untouched: long[:60] + "a", Stressed: long[:60] + "b", Offset: new(uint64(200)), Line: 1}},
		{long, long + "y", Difference{Untouched: long[:60], Stressed: long[:60], Offset: new(uint64(maxKept)), Line: 1}},
		{long + "y", long + "z", Difference{Untouched: "1048577 bytes", Stressed: "1048577 bytes"}},
	} {
		a, b := &Outcome{Stdout: took(t, c.a), Stderr: took(t, c.a)}, &Outcome{Stdout: took(t, c.b), Stderr: took(t, c.b)}
		require.Empty(t, differences(a, a))
		want := []Difference{c.want, c.want}
		want[0].What, want[1].What = "stdout", "stderr"
		require.Equal(t, want, differences(a, b))
		require.Len(t, differences(a, &Outcome{Stdout: b.Stdout, Stderr: b.Stderr, ExitCode: 1}), 3)
		require.LessOrEqual(t, len(a.Stdout.kept), maxKept)
		require.EqualValues(t, len(c.a), a.Stdout.Bytes)
	}
}

func TestOutcomes(t *testing.T) {
	for want, o := range map[string]Outcome{"exit status 0": {}, "exit status 3": {ExitCode: 3}, "killed by SIGABRT": {Signal: 6}, "does not end": {TimedOut: true, Signal: 9}} {
		require.Equal(t, want, o.End())
	}
	// A run that was killed because of its time may have had more to print.
	require.Len(t, differences(&Outcome{Stdout: took(t, "all of it")}, &Outcome{TimedOut: true, Stdout: took(t, "all")}), 1)
}

// TestChoice requires that the chosen exits depend only on the seed, the thread and the number, and that their fraction is about the requested one.
// Different seeds, and different threads, must choose different exits.
func TestChoice(t *testing.T) {
	chosen := func(seed uint64, thread int, p float64) (list []uint64) {
		o := Options{Seed: seed, Probability: p}
		for n := range uint64(10000) {
			if o.chooses(Exit{thread, n + 1}) {
				list = append(list, n+1)
			}
		}
		return list
	}
	require.Equal(t, chosen(1, 1, 0.1), chosen(1, 1, 0.1))
	require.NotEqual(t, chosen(1, 1, 0.1), chosen(2, 1, 0.1))
	require.NotEqual(t, chosen(1, 1, 0.1), chosen(1, 2, 0.1))
	require.Subset(t, chosen(1, 1, 0.1), chosen(1, 1, 0.01), "more of them are the same and others")
	require.InDelta(t, 1000, len(chosen(1, 1, 0.1)), 150)
	require.InDelta(t, 100, len(chosen(7, 3, 0.01)), 50)
	require.Len(t, chosen(5, 1, 1), 10000)
	require.Equal(t, []uint64{183, 208, 264}, chosen(1, 1, 0.01)[:3], "also with the next release")

	o := Options{Only: []Exit{{2, 5}}, Probability: 1}
	require.True(t, o.chooses(Exit{2, 5}))
	require.False(t, o.chooses(Exit{1, 5}))
}

func TestExitNames(t *testing.T) {
	for text, want := range map[string]Exit{"17": {1, 17}, "2:17": {2, 17}, "1:1": {1, 1}, "3:18446744073709551615": {3, 1<<64 - 1}} {
		got, err := ParseExit(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
		again, err := ParseExit(got.String())
		require.NoError(t, err)
		require.Equal(t, want, again)
	}
	for _, text := range []string{"", "0", "0:1", "1:0", "-1:1", "1:2:3", "x", "1:", ":1", "1.5", "18446744073709551616"} {
		_, err := ParseExit(text)
		require.ErrorContains(t, err, fmt.Sprintf("%q: expected the number of an exit", text))
	}
	for text, want := range map[string]float64{"0.01": 0.01, "1%": 0.01, "1": 1, "100%": 1, "1e-3": 0.001} {
		got, err := ParseProbability(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", "%", "0", "-1", "1.1", "101%", "NaN", "Inf", "x", "1%%"} {
		_, err := ParseProbability(text)
		require.ErrorContains(t, err, "a share of all exits", text)
	}
}

// TestThreadsByAge requires that threads are identified by the order of their creation, even if the kernel starts again with low ids.
func TestThreadsByAge(t *testing.T) {
	for _, made := range [][]int{{100, 101, 105}, {32766, 32767, 300, 302}, {4194303, 301}} {
		require.IsIncreasing(t, append([]int{-1}, ages(made)...))
		require.Zero(t, ages(made)[0])
	}
}

func ages(tids []int) (list []int) {
	for _, tid := range tids {
		list = append(list, age(tids[0], tid))
	}
	return list
}

// TestEndless requires that a killed run counts as a difference only if slowness cannot be the cause.
func TestEndless(t *testing.T) {
	none := &attempt{exits: 100, Outcome: Outcome{Seconds: 1}}
	const limit = time.Minute
	require.Empty(t, endlessReason(&attempt{exits: 100, idle: 10 * time.Second}, none, limit))
	require.Empty(t, endlessReason(&attempt{exits: 120, idle: 29 * time.Second}, none, limit), "threads that wait for each other may come to some more")
	require.Equal(t, "it reached 5000 exits, but 100 with none committed", endlessReason(&attempt{exits: 5000}, none, limit))
	require.Equal(t, "it reached no exit any more", endlessReason(&attempt{exits: 3, idle: 50 * time.Second}, none, limit))
	require.Empty(t, endlessReason(&attempt{exits: 3, idle: 50 * time.Second}, &attempt{exits: 100, Outcome: Outcome{Seconds: 30}}, limit), "it is slow anyway")
}

// TestStreamsOfCommands requires that output of any length is compared, that processes that a program leaves running do not delay the result, and
// that each run gets the same input.
func TestStreamsOfCommands(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	m, err := ir.ParseFile(livetest.IR(t, 19, "tick.ll"))
	require.NoError(t, err)
	sh := func(line string) *Report {
		o := Options{Stdin: livetest.Testdata(t, "programs", "tick.ll")}
		o.Modules = []*ir.Module{m}
		return run(t, []string{livetest.Tool(t, "sh"), "-c", line}, o)
	}
	r := sh("cat; head -c 5000000 /dev/zero | tr '\\0' x >&2; exit 3")
	require.Equal(t, Same, r.Status, "%+v", r.Differences)
	require.Equal(t, "exit status 3", r.Stressed.End())
	require.EqualValues(t, 5000000, r.Stressed.Stderr.Bytes)
	require.Len(t, r.Stressed.Stderr.kept, maxKept)
	require.True(t, bytes.Contains(r.Stressed.Stdout.kept, []byte("A hot loop with one stackmap")))
	require.False(t, r.Stressed.Stdout.Cut)

	pids := filepath.Join(t.TempDir(), "pids")
	r = sh("echo here; sleep 1000 & echo $! >> " + pids + "; kill -KILL $$")
	text, err := os.ReadFile(pids)
	require.NoError(t, err)
	require.Len(t, strings.Fields(string(text)), 2)
	for _, word := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(word)
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	require.Equal(t, Same, r.Status, "%+v", r.Differences)
	require.Equal(t, "killed by SIGKILL", r.Untouched.End())
	require.True(t, r.Untouched.Stdout.Cut && r.Stressed.Stdout.Cut)
	require.Equal(t, "here\n", string(r.Stressed.Stdout.kept))
}
