package main_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
)

// A number is a process and a file is a core, for every verb that looks at one: the output is that of -p and --core.
func TestPositional(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "deoptimize.ll", "orc")
	core := filepath.Join(t.TempDir(), "it is a core")
	object, tick := ticking(t)
	require.Equal(t, 0, reframe(t, "record", pid(p), "-o", core, "--ir", p.IR).code)
	files := []string{"--ir", p.IR, "--layout", layout(t)}
	for _, c := range []struct {
		words, flags []string
		code         int
	}{
		{[]string{"frames", core}, []string{"frames", "--core", core}, 0},
		{append([]string{"resume", core}, files...), append([]string{"resume", "--core", core}, files...), 0},
		{append([]string{"resume"}, append(files, core)...), append([]string{"resume", "--core", core}, files...), 0},
		{[]string{"explain", core}, []string{"explain", "--core", core}, 0},
		{[]string{"explain", core, "#3"}, []string{"explain", "--core", core, "#3"}, 0},
		{[]string{"explain", core, "2882400000"}, []string{"explain", "--core", core, "2882400000"}, 0},
		{[]string{"maps", core}, []string{"maps", "--core", core}, 0},
		{[]string{"maps", pid(p)}, []string{"maps", "-p", pid(p)}, 0},
		{[]string{"trace", pid(p), "--dry-run", "--ir", p.IR}, []string{"trace", "-p", pid(p), "--dry-run", "--ir", p.IR}, 0},
		{[]string{"trace", "--dry-run", pid(p), "--json"}, []string{"trace", "-p", pid(p), "--dry-run", "--json"}, 0},
		// For a process that continues the messages differ, because they report how long it was stopped.
		{[]string{"verify", "--ir", tick, pid(p), "--at", "nosuch", "--site", "stackmap"}, []string{"verify", "--ir", tick, "-p", pid(p), "--at", "nosuch", "--site", "stackmap"}, 64},
		{[]string{"trace", core}, []string{"trace", "--core", core}, 64},
		{[]string{"verify", core, "--ir", tick}, []string{"verify", "--core", core, "--ir", tick}, 64},
	} {
		words, flags := reframe(t, c.words...), reframe(t, c.flags...)
		require.Equal(t, c.code, words.code, "%v\n%s", c.words, words.stderr)
		require.Equal(t, flags, words, "%v", c.words)
	}
	for _, verb := range []string{"frames", "resume", "explain"} {
		r := reframe(t, append([]string{verb, pid(p)}, files...)...)
		require.Equal(t, 0, r.code, r.stderr)
		require.Contains(t, r.stdout, "sum_opt+0x")
	}
	small := filepath.Join(t.TempDir(), "small.core")
	r := reframe(t, "record", core, "-o", small, "--ir", p.IR)
	require.Equal(t, 0, r.code, r.stderr)
	require.Equal(t, 0, reframe(t, "frames", small).code)

	// A command needs no --.
	host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{})
	r = reframe(t, append([]string{"trace", "--ir", tick, "--limit", "1"}, host...)...)
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "1 exit in ")

	require.Contains(t, reframe(t, "trace", pid(p), "--help").stdout, "Usage:\n  reframe trace ")
	for _, c := range []struct{ args, want string }{
		{"frames lli", `"lli" is neither the number of a process nor a file`},
		{"frames 99999999999999999999", "99999999999999999999: no process has such a number"},
		{"frames 0", "-p 0: a process number is above 0"},
		{"frames PID CORE", "one target at a time: PID, or CORE"},
		{"frames PID -p 5", `"PID" and --pid both say what to look at`},
		{"frames --core CORE PID", `"PID" and --core both say what to look at`},
		{"explain -p PID 1 2", "one question at a time: 1, or 2"},
		{"explain PID -f 1 #2", "-f and #2 both say which frame"},
		{"trace PID --nosuch", "unknown flag: --nosuch"},
		{"trace PID --cuont", "unknown flag: --cuont; did you mean --count?"},
		{"frames --jsno PID", "unknown flag: --jsno; did you mean --json?"},
		{"trace PID --color blue", "--color blue: auto, always or never"},
		{"trace PID --limit x", `--limit "x": a whole number, 0 or more`},
		{"trace PID -- ls", "-p and a command to start: one of them"},
		{"record PID CORE -o x", "-p and a command to start: one of them"},
	} {
		text := strings.NewReplacer("PID", pid(p), "CORE", core).Replace(c.want)
		var args []string
		for _, word := range strings.Fields(c.args) {
			args = append(args, strings.NewReplacer("PID", pid(p), "CORE", core).Replace(word))
		}
		reframe(t, args...).failsEmpty(t, 64, text)
	}
	unharmed(t, p)
}

// TestNoSuchFrame requires that the error for an unknown frame or thread lists the existing ones.
func TestNoSuchFrame(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "deoptimize.ll", "orc")
	n := len(list(t, list(t, reframe(t, "frames", pid(p), "--json").object(t)["threads"])[0]["frames"]))
	has := fmt.Sprintf("there is no frame 77; thread %d has %d, #0 to #%d", p.PID, n, n-1)
	for _, verb := range []string{"frames", "resume", "explain"} {
		r := reframe(t, verb, pid(p), "-f", "77")
		require.Equal(t, 2, r.code)
		require.Contains(t, r.stderr, has)
		r = reframe(t, verb, pid(p), "-t", "1")
		r.failsEmpty(t, 2, fmt.Sprintf("has no thread 1; it has %d \"lli", p.PID))
	}
	reframe(t, "frames", pid(p), "--function", "nosuch").fails(t, 2, "there is no frame of nosuch; without --function all are shown")
	reframe(t, "frames", pid(p), "--function", "main", "-f", "77").fails(t, 2, "there is no frame 77 that is of main; ")
	many := livetest.C(t, "threads.c", []string{"-pthread"}, "12")
	r := reframe(t, "frames", pid(many), "-f", "77")
	require.Equal(t, 2, r.code)
	require.Regexp(t, `there is no frame 77; of its \d+ threads \d+ has the most: \d+, #0 to #\d+`, r.stderr)
	r = reframe(t, "frames", pid(many), "-t", "1")
	require.Regexp(t, `has no thread 1; it has \d+ .* and \d+ more`, r.stderr)
}
