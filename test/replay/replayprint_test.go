package replay_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestReplayPrints requires that the commands of scripts print the same as the verbs. The scripts of testdata/replay compare the output; with
// REPLAY=update in the environment they are rewritten.
func TestReplayPrints(t *testing.T) {
	livetest.Slow(t)
	module := livetest.IR(t, 19, "tick.ll")
	object, wrongModule := clitest.WrongTick(t)
	variables := strings.Join([]string{"env",
		"HOST=" + livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{})[0],
		"TICK=" + livetest.PICObject(t, 19, "tick.ll", "-O2"), "TICK_IR=" + module, "WRONG=" + object, "WRONG_IR=" + wrongModule,
		"STATE=" + livetest.PICObject(t, 19, "state.ll", "-O2"), "STATE_IR=" + livetest.IR(t, 19, "state.ll"),
		"JITDUMPDIR=" + t.TempDir(), // for lli
		"LLI=" + livetest.LLVM(t, 19, "lli"), "LOOP=" + livetest.IR(t, 19, "deoptimize.ll"), "LAYOUT=" + clitest.DeoptimizeLayout(t)}, " ")
	paths, err := filepath.Glob("testdata/replay/*.txtar")
	require.NoError(t, err)
	require.Len(t, paths, 3)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		script := filepath.Join(t.TempDir(), filepath.Base(path))
		require.NoError(t, os.WriteFile(script, []byte(variables+"\n"+string(text)), 0o644))
		if os.Getenv("REPLAY") == "update" {
			r := clitest.Run(t, "replay", "--update", script)
			require.Zero(t, r.Code, r.Stdout)
			text, err := os.ReadFile(script)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, text[len(variables)+1:], 0o644))
		}
		r := clitest.Run(t, "replay", script)
		require.Zero(t, r.Code, r.Stdout)
	}
}

// TestScriptsTopic requires that the output of `reframe help scripts` fits a terminal, and names each command once.
func TestScriptsTopic(t *testing.T) {
	r := clitest.Run(t, "help", "scripts")
	require.Zero(t, r.Code, r.Stderr)
	for line := range strings.Lines(r.Stdout) {
		require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 110, line)
	}
	_, list, _ := strings.Cut(r.Stdout, "Reframe adds these commands:\n")
	var names []string
	for _, found := range regexp.MustCompile(`(?m)^([a-z]+)( |$)`).FindAllStringSubmatch(list, -1) {
		names = append(names, found[1])
	}
	require.Equal(t, []string{"launch", "until", "continue", "record", "core", "frames", "frame", "expect", "set", "resume", "returns", "throws", "prints", "exits", "verify"}, names)
}

// TestReplayScriptInterrupted requires that Ctrl-C ends the programs that scripts have started and their children. kill -9 ends only the programs.
func TestReplayScriptInterrupted(t *testing.T) {
	livetest.NeedsTools(t)
	for _, by := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		script := filepath.Join(t.TempDir(), "hang.txtar")
		require.NoError(t, os.WriteFile(script, []byte("env MARK="+script+"\nlaunch sleep 1000\ncontinue\n"), 0o644))
		if by == syscall.SIGINT {
			require.NoError(t, os.WriteFile(script, []byte("env MARK="+script+"\nlaunch sh -c 'sleep 1000 & sleep 1000'\ncontinue\n"), 0o644))
		}
		c := exec.Command(clitest.Binary(), "replay", script)
		c.Env = append(os.Environ(), "TMPDIR="+t.TempDir()) // if reframe is killed, it does not remove the script's folder
		require.NoError(t, c.Start())
		started := func() (n int) {
			paths, err := filepath.Glob("/proc/[0-9]*/environ")
			require.NoError(t, err)
			for _, path := range paths {
				if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), "MARK="+script+"\x00") {
					n++
				}
			}
			return n
		}
		want := map[syscall.Signal]int{syscall.SIGINT: 3, syscall.SIGKILL: 1}[by]
		require.Eventually(t, func() bool { return started() == want }, livetest.Patience, time.Millisecond)
		require.NoError(t, c.Process.Signal(by))
		_ = c.Wait() // the test checks its status
		if by == syscall.SIGINT {
			require.Equal(t, 130, c.ProcessState.ExitCode())
			require.Zero(t, started())
		}
		require.Eventually(t, func() bool { return started() == 0 }, livetest.Patience, time.Millisecond)
	}
}
