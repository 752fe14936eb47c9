package main_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestPositional requires that, for every verb with a target, a number is a process and a file is a core, with the same output as -p and --core.
func TestPositional(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	p := livetest.Lli(t, 19, "deoptimize.ll", "orc")
	core := filepath.Join(t.TempDir(), "it is a core")
	object, tick := clitest.TickObject(t)
	require.Equal(t, 0, clitest.Run(t, "record", clitest.PID(p), "-o", core, "--ir", p.IR).Code)
	files := []string{"--ir", p.IR, "--layout", clitest.DeoptimizeLayout(t)}
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
		{[]string{"maps", clitest.PID(p)}, []string{"maps", "-p", clitest.PID(p)}, 0},
		{[]string{"trace", clitest.PID(p), "--dry-run", "--ir", p.IR}, []string{"trace", "-p", clitest.PID(p), "--dry-run", "--ir", p.IR}, 0},
		{[]string{"trace", "--dry-run", clitest.PID(p), "--json"}, []string{"trace", "-p", clitest.PID(p), "--dry-run", "--json"}, 0},
		// In messages about a running process, the duration of the stop varies.
		{[]string{"verify", "--ir", tick, clitest.PID(p), "--at", "nosuch", "--site", "stackmap"}, []string{"verify", "--ir", tick, "-p", clitest.PID(p), "--at", "nosuch", "--site", "stackmap"}, 64},
		{[]string{"trace", core}, []string{"trace", "--core", core}, 64},
		{[]string{"verify", core, "--ir", tick}, []string{"verify", "--core", core, "--ir", tick}, 64},
	} {
		words, flags := clitest.Run(t, c.words...), clitest.Run(t, c.flags...)
		require.Equal(t, c.code, words.Code, "%v\n%s", c.words, words.Stderr)
		require.Equal(t, flags, words, "%v", c.words)
	}
	for _, verb := range []string{"frames", "resume", "explain"} {
		r := clitest.Run(t, append([]string{verb, clitest.PID(p)}, files...)...)
		require.Equal(t, 0, r.Code, r.Stderr)
		require.Contains(t, r.Stdout, "sum_opt+0x")
	}
	small := filepath.Join(t.TempDir(), "small.core")
	r := clitest.Run(t, "record", core, "-o", small, "--ir", p.IR)
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Equal(t, 0, clitest.Run(t, "frames", small).Code)

	// A command can be given without --.
	host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{})
	r = clitest.Run(t, append([]string{"trace", "--ir", tick, "--limit", "1"}, host...)...)
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Contains(t, r.Stderr, "1 exit in ")

	require.Contains(t, clitest.Run(t, "trace", clitest.PID(p), "--help").Stdout, "Usage:\n  reframe trace ")
	for _, c := range []struct{ args, want string }{
		{"frames lli", `"lli" is neither a process id nor a file`},
		{"frames 99999999999999999999", "99999999999999999999: not a valid process id"},
		{"frames 0", "-p 0: a process id must be above 0"},
		{"frames PID CORE", "expected one target, got PID and CORE"},
		{"frames PID -p 5", `"PID" and --pid cannot be combined: both select the target`},
		{"frames --core CORE PID", `"PID" and --core cannot be combined: both select the target`},
		{"explain -p PID 1 2", "expected one address, record or frame, got 1 and 2"},
		{"explain PID -f 1 #2", "-f and #2 cannot be combined: both select a frame"},
		{"trace PID --nosuch", "unknown flag: --nosuch"},
		{"trace PID --cuont", "unknown flag: --cuont; did you mean --count?"},
		{"frames --jsno PID", "unknown flag: --jsno; did you mean --json?"},
		{"trace PID --color blue", "--color blue: expected auto, always or never"},
		{"trace PID --limit x", `--limit "x": expected a whole number, 0 or more`},
		{"trace PID -- ls", "-p and a command to start cannot be combined"},
		{"record PID CORE -o x", "-p and a command to start cannot be combined"},
	} {
		text := strings.NewReplacer("PID", clitest.PID(p), "CORE", core).Replace(c.want)
		var args []string
		for _, word := range strings.Fields(c.args) {
			args = append(args, strings.NewReplacer("PID", clitest.PID(p), "CORE", core).Replace(word))
		}
		clitest.Run(t, args...).FailsEmpty(t, 64, text)
	}
	clitest.RequireUnharmed(t, p)
}

// TestNoSuchFrame requires that the error for an unknown frame or thread lists the existing ones.
func TestNoSuchFrame(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "deoptimize.ll", "orc")
	n := len(clitest.Objects(t, clitest.Objects(t, clitest.Run(t, "frames", clitest.PID(p), "--json").Object(t)["threads"])[0]["frames"]))
	has := fmt.Sprintf("there is no frame 77; thread %d has %d, #0 to #%d", p.PID, n, n-1)
	for _, verb := range []string{"frames", "resume", "explain"} {
		r := clitest.Run(t, verb, clitest.PID(p), "-f", "77")
		require.Equal(t, 2, r.Code)
		require.Contains(t, r.Stderr, has)
		r = clitest.Run(t, verb, clitest.PID(p), "-t", "1")
		r.FailsEmpty(t, 2, fmt.Sprintf("has no thread 1; it has %d \"lli", p.PID))
	}
	clitest.Run(t, "frames", clitest.PID(p), "--function", "nosuch").Fails(t, 2, "no frame of nosuch found; without --function all frames are shown")
	clitest.Run(t, "frames", clitest.PID(p), "--function", "main", "-f", "77").Fails(t, 2, "frame 77 is not of main, or does not exist; ")
	many := livetest.C(t, "threads.c", []string{"-pthread"}, "12")
	r := clitest.Run(t, "frames", clitest.PID(many), "-f", "77")
	require.Equal(t, 2, r.Code)
	require.Regexp(t, `there is no frame 77; of its \d+ threads \d+ has the most: \d+, #0 to #\d+`, r.Stderr)
	r = clitest.Run(t, "frames", clitest.PID(many), "-t", "1")
	require.Regexp(t, `has no thread 1; it has \d+ .* and \d+ more`, r.Stderr)
}
