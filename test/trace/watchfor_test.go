package trace_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestFor requires that --for ends trace, verify and record like a limit, and that the process continues.
func TestFor(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := clitest.TickObject(t)
	busy, begin := livetest.ObjectHost(t, object, livetest.ObjectHostOptions{Rounds: 1 << 30})
	begin()
	idle, _ := livetest.ObjectHost(t, object, livetest.ObjectHostOptions{Rounds: 1})
	core := filepath.Join(t.TempDir(), "exit.core")
	for _, c := range []struct {
		args   []string
		p      *livetest.Process
		status int
		words  string
	}{
		{[]string{"trace", "--count"}, busy, 0, `^\d+ exits in \d+\.\d{3} s; the time limit of LONG was reached\n  \d+  tick\+`},
		{[]string{"trace", "--ir", module, "--stop-at", "%i < 0"}, busy, 0, `^\d+ exits, 0 shown in \d+\.\d{3} s; the time limit of LONG was reached\n`},
		{[]string{"trace"}, idle, 2, `^0 exits in \d+\.\d{3} s; the time limit of LONG was reached\nreframe: no exit occurred\n$`},
		{[]string{"verify", "--ir", module, "--timeout", "10m"}, busy, 0, `^\d+ exits? verified in \d+\.\d{3} s: \d+ same, 0 different, 0 not comparable; (\d+ skipped; )?the time limit of LONG was reached\n(  \d+  skipped: .*\n)*$`},
		{[]string{"verify", "--ir", module}, idle, 2, `; the time limit of LONG was reached\nreframe: no exit occurred\n$`},
		{[]string{"record", "--hit", "1", "-o", core}, idle, 2, `^reframe: the time limit of LONG was reached: no such exit occurred\n$`},
		{[]string{"record", "--hit", "1000000000000", "-o", core}, busy, 2, `^reframe: the time limit of LONG was reached: only \d+ such exits occurred, but --hit 1000000000000 was given\n$`},
	} {
		long := "300ms" // in this interval the process reaches no exit
		if c.p == busy {
			long = "3s" // in this interval the process reaches an exit even on a slow machine, because there are thousands per second
		}
		r := clitest.Run(t, append(c.args, "--for", long, "-p", clitest.PID(c.p))...)
		if c.p == busy && strings.Contains(r.Stderr, "all were skipped") { // under load no comparison may finish in that time
			long = "30s"
			r = clitest.Run(t, append(c.args, "--for", long, "-p", clitest.PID(c.p))...)
		}
		require.Equal(t, c.status, r.Code, "%v: %s", c.args, r.Stderr)
		require.Regexp(t, strings.ReplaceAll(c.words, "LONG", long), r.Stderr, c.args)
		require.NoFileExists(t, core)
		require.Equal(t, "0", clitest.ThreadStatus(c.p.PID, c.p.PID, "TracerPid"))
	}
	require.True(t, busy.Alive())
	busy.Kill()
	// This is refused immediately, also on a slow machine.
	clitest.Run(t, "record", "-p", clitest.PID(idle), "-o", core, "--for", "1s").FailsEmpty(t, 64, "--for requires a flag that waits for an exit")
	clitest.Run(t, "record", "-p", clitest.PID(idle), "-o", core, "--hit", "2", "--for", "-1s").FailsEmpty(t, 64, "--for -1s: must be above 0")
	idle.Kill()
}

// TestCountToLimit requires that --count stops exactly at a limit, both where the tracer counts exits and where the frames of each exit are read.
func TestCountToLimit(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := clitest.TickObject(t)
	for _, threads := range []int{1, 4} {
		o := livetest.ObjectHostOptions{Threads: threads, Rounds: 3}
		host := livetest.ObjectHostCommand(t, object, o)
		for _, more := range [][]string{nil, {"--ir", module, "--stop-at", "%i < 0"}} {
			r := clitest.Run(t, append(append([]string{"trace", "--count", "--limit", "777"}, more...), append([]string{"--"}, host...)...)...)
			require.Zero(t, r.Code, r.Stderr)
			require.Regexp(t, `^777 exits in \d+\.\d{3} s; the limit of 777 was reached\n  777  tick\+`, r.Stderr)
			require.Equal(t, clitest.OutputUntraced(t, host), r.Stdout)
		}
	}
}

// TestStopAtShowsOne requires that without --log only the exit of --stop-at is shown.
func TestStopAtShowsOne(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := clitest.TickObject(t)
	host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 1})
	file := filepath.Join(t.TempDir(), "exits")
	for _, c := range []struct {
		flags string
		lines int
		words string
	}{
		{"", 0, "778 exits, 1 shown in"},
		{"--log", 777, "778 exits in"},
		{"--log --every 100", 7, "778 exits, 8 shown in"},
		{"--count", 0, "778 exits in"},
	} {
		r := clitest.Run(t, append(append([]string{"trace", "--ir", module, "--stop-at", "%i == 777", "--force", "-o", file}, strings.Fields(c.flags)...), append([]string{"--"}, host...)...)...)
		require.Zero(t, r.Code, r.Stderr)
		require.Contains(t, r.Stderr, c.words, c.flags)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		shown := 0
		for line := range strings.Lines(string(text)) {
			if clitest.TickExitLine.MatchString(strings.TrimSuffix(line, "\n")) {
				shown++
			}
		}
		require.Equal(t, c.lines, shown, c.flags)
		require.Regexp(t, `(?m)^        %i       i64    777  `, string(text), c.flags)
	}
}

// TestJSONAlone requires that, if JSON objects go to standard error, reframe writes nothing else there, not even warnings and errors, and that the
// last object is the summary.
func TestJSONAlone(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := clitest.TickObject(t)
	state := livetest.PICObject(t, 19, "state.ll", "-O2")
	host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 1})
	for _, c := range []struct {
		verb   string
		args   []string
		host   []string
		status int
		lines  int // number of lines, without warnings
		warns  int
		error  string
	}{
		{"trace", []string{"--limit", "3"}, host, 0, 4, 0, ""},
		{"trace", []string{"--record", "77"}, host, 2, 1, 1, "no exit occurred"},
		{"trace", []string{"--at", "no_such_thing"}, host, 2, 1, 1, "no exit occurred"},
		{"trace", []string{"--count"}, host, 0, 1, 0, ""},
		{"trace", nil, []string{"true"}, 2, 1, 0, "no exit occurred"},
		// This module is not the compiled one.
		{"trace", []string{"--ir", clitest.EditedCopy(t, module, ", i64 %y)", ")"), "--limit", "1"}, host, 0, 2, 1, ""},
		{"verify", []string{"--ir", module, "--limit", "2", "--all"}, host, 0, 3, 0, ""},
		{"verify", []string{"--ir", module, "--skip", "100000"}, host, 2, 1, 0, "no exit was verified: all were skipped"},
		{"verify", []string{"--ir", module}, []string{"true"}, 2, 1, 0, "no exit occurred"},
		{"verify", []string{"--ir", livetest.IR(t, 19, "state.ll")}, livetest.ObjectHostCommand(t, state, livetest.ObjectHostOptions{Rounds: 1}), 0, 1, 0, ""},
	} {
		r := clitest.Run(t, append(append([]string{c.verb, "--json"}, c.args...), append([]string{"--"}, c.host...)...)...)
		require.Equal(t, c.status, r.Code, "%v: %s", c.args, r.Stderr)
		lines := strings.Split(strings.TrimSuffix(r.Stderr, "\n"), "\n")
		warned := 0
		for n, line := range lines {
			clitest.RequireValid(t, c.verb+".schema.json", line)
			require.Equal(t, n == len(lines)-1, strings.HasPrefix(line, fmt.Sprintf(`{"schema":"reframe.%s.summary/v1",`, c.verb)), line)
			if strings.HasPrefix(line, `{"schema":"reframe.warning/v1",`) {
				warned++
			}
		}
		require.Equal(t, c.warns, warned, r.Stderr)
		require.Len(t, lines, c.lines+warned, r.Stderr)
		var sum struct{ Error string }
		require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &sum))
		require.Equal(t, c.error, sum.Error)
	}
	// If the JSON goes elsewhere, messages are text.
	file := filepath.Join(t.TempDir(), "exits")
	r := clitest.Run(t, append([]string{"trace", "--json", "--record", "77", "-o", file, "--"}, host...)...)
	require.Equal(t, 2, r.Code)
	require.Regexp(t, `(?m)^0 exits in .*\nreframe: no exit occurred\n$`, r.Stderr)
}

// TestNoneIsMeant requires that, if no record matches the flags, the message lists the existing records.
func TestNoneIsMeant(t *testing.T) {
	t.Parallel()
	object, _ := clitest.TickObject(t)
	host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 1})
	for flags, want := range map[string]string{
		"--record 78":                 "the process had 1 record, and none is selected; their ids are 1\n",
		"--function tock":             "the process had 1 record, and none is selected; no function tock has records; nearest: tick\n",
		"--record 78 --function tick": "the process had 1 record, and none is selected; their ids are 1\n",
	} {
		r := clitest.Run(t, append(append([]string{"trace"}, strings.Fields(flags)...), append([]string{"--"}, host...)...)...)
		require.Equal(t, 2, r.Code)
		require.Contains(t, r.Stderr, want, flags)
	}
}
