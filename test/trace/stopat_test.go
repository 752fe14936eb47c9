package trace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestStopAt requires that trace, record and until stop at the first exit at which the condition is true. The test computes this exit with the same
// loop in C.
func TestStopAt(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := clitest.TickObject(t)
	host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 1})
	signed := func(v uint64) int64 { return int64(v) }
	for text, holds := range map[string]func(i, acc, x, y uint64) bool{
		"%i > 3 && %y < %x":                       func(i, acc, x, y uint64) bool { return i > 3 && signed(y) < signed(x) },
		"i % 7 == 5 && (acc < 0 || x < 0)":        func(i, acc, x, y uint64) bool { return i%7 == 5 && (signed(acc) < 0 || signed(x) < 0) },
		"(%acc ^ %y) & 0xff == 0x5a":              func(i, acc, x, y uint64) bool { return (acc^y)&0xff == 0x5a },
		"%i*%i > 300000 && !(%x == %y)":           func(i, acc, x, y uint64) bool { return i*i > 300000 && x != y },
		"#0 == 400 || %nothing == 1 && %i == 800": func(i, acc, x, y uint64) bool { return i == 400 },
	} {
		want := uint64(0)
		for {
			v := clitest.TickValues(want)
			if holds(v[0], v[1], v[2], v[3]) {
				break
			}
			want++
			require.Less(t, want, uint64(1000), text)
		}
		shown := fmt.Sprintf(`(?m)^        %%i       i64    %d  `, want)
		dir := t.TempDir()
		exits, core, script := filepath.Join(dir, "exits"), filepath.Join(dir, "core"), filepath.Join(dir, "until.txtar")
		r := clitest.Run(t, append([]string{"trace", "--ir", module, "--stop-at", text, "-o", exits, "--"}, host...)...)
		require.Zero(t, r.Code, r.Stderr)
		require.Contains(t, r.Stderr, fmt.Sprintf("%d exits, 1 shown in", want+1))
		require.Contains(t, r.Stderr, "stopped at "+text)
		trace, err := os.ReadFile(exits)
		require.NoError(t, err)
		require.Regexp(t, shown, string(trace))

		r = clitest.Run(t, append([]string{"record", "--ir", module, "--stop-at", text, "-o", core, "--"}, host...)...)
		require.Zero(t, r.Code, r.Stderr)
		require.Regexp(t, shown, clitest.Run(t, "frames", "--core", core, "--ir", module).Stdout)

		require.NoError(t, os.WriteFile(script, fmt.Appendf(nil, "launch --ir %s -- %s %s 1 1\nuntil 1 --stop-at '%s'\nexpect %%i = %d\n", module, host[0], object, text, want), 0o600))
		r = clitest.Run(t, "replay", script)
		require.Zero(t, r.Code, r.Stdout)
	}
}

// TestStopAtNoSuchName requires that a condition which no exit can meet is refused immediately, with the existing names, and that the process is not
// started.
func TestStopAtNoSuchName(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	_, tick := clitest.TickObject(t)
	guards, layout := livetest.IR(t, 19, "guards.ll"), livetest.Testdata(t, "programs", "guards.layout.json")
	file := filepath.Join(t.TempDir(), "started")
	for _, verb := range [][]string{{"trace"}, {"record", "-o", filepath.Join(t.TempDir(), "core")}} {
		for _, c := range []struct {
			args []string
			want string
		}{
			{[]string{"--ir", tick, "--stop-at", "%ac > 3"}, `%ac > 3: at "%ac > 3": no selected site has a slot of that name; the names are %acc, %i, %x, %y`},
			{[]string{"--ir", tick, "--stop-at", "%i > 3 && %acc == j"}, `at "j": no selected site has a slot of that name; the names are %i, %x, %y, %acc`},
			{[]string{"--ir", tick, "--record", "2", "--stop-at", "%i > 3"}, `at "%i > 3": no selected site has a slot with a name`},
			{[]string{"--no-self-description", "--stop-at", "%i > 3"}, `names of slots come from a module (--ir) or a layout (--layout); without them the slots are loc0, loc1 and so on`},
			{[]string{"--ir", guards, "--layout", layout, "--stop-at", "%nothing == 0"}, `at "%nothing == 0": no selected site has a slot of that name; the names are %`},
			{[]string{"--no-self-description", "--ir", tick, "--stop-at", "local[2] > 100"}, `at "local[2] > 100": no selected site has a slot of that name; the names are %`},
			{[]string{"--ir", tick, "--stop-at", "local[2] > 100 && %ac > 3"}, `at "%ac > 3": no selected site has a slot of that name; the names are %acc`},
			{[]string{"--ir", tick, "--layout", layout, "--stop-at", "local[2] > 100"}, `at "local[2] > 100": no selected site has a slot of that name; the names are %`},
			{[]string{"--ir", tick, "--stop-at", "1 == 1"}, `1 == 1: at "1 == 1": it asks for no slot`},
			{[]string{"--ir", tick, "--stop-at", "%i > 3 && false"}, "it is true at no site: no site has all the slots that it names"},
		} {
			r := clitest.Run(t, append(append(verb[:len(verb):len(verb)], c.args...), "--", "touch", file)...)
			r.FailsEmpty(t, 64, "--stop-at: ", c.want)
			require.NoFileExists(t, file)
		}
	}
	// A condition is accepted if its name may exist later.
	for _, text := range []string{"%i > 3 || %none == 3", "loc0 > 3", "#7 == 3", `%"i" == x`} {
		r := clitest.Run(t, "trace", "--ir", tick, "--stop-at", text, "--", "touch", file)
		require.Equal(t, 2, r.Code, r.Stderr)
		require.Contains(t, r.Stderr, "no exit occurred")
		require.FileExists(t, file)
	}
	// This includes names that the target may describe.
	for _, text := range []string{"%i > 3", "local[2] > 100"} {
		r := clitest.Run(t, "trace", "--stop-at", text, "--", "touch", file)
		require.Equal(t, 2, r.Code, r.Stderr)
		require.Contains(t, r.Stderr, "no exit occurred")
	}
	object, _ := clitest.TickObject(t)
	r := clitest.Run(t, append([]string{"trace", "--stop-at", "%i > 3", "--"}, livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 1})...)...)
	require.Contains(t, r.Stderr, "\n1000 exits had no slot that the condition names: names of slots come from a module or a layout, given by --ir or --layout or contained in the target\n")
	r = clitest.Run(t, "help", "conditions")
	require.Zero(t, r.Code)
	require.Contains(t, r.Stdout, "%i > 100 && (%acc == 0x10 || %acc < %i * 2)")
}
