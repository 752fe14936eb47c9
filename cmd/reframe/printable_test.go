package main_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestNamesAreNotObeyed requires that a program's name, which may be any text, is escaped for a terminal.
func TestNamesAreNotObeyed(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile(livetest.CBinary(t, "nojit.c"))
	require.NoError(t, err)
	// The name of the main thread is that of the file (execve(2), proc_pid_comm(5)).
	const name = "\x1b[31mred\x07\r\u009b\xff\nend"
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, program, 0o700))
	c := exec.Command(path, "\x1b]0;title\x07")
	ready, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	defer c.Wait()
	defer c.Process.Kill()
	_, err = ready.Read(make([]byte, 16))
	require.NoError(t, err)
	process := fmt.Sprint(c.Process.Pid)

	for _, args := range [][]string{
		{"frames", "-p", process, "--color", "never"},
		{"frames", "-p", process, "--json"},
		{"maps", "-p", process},
		{"resume", "-p", process},
		{"explain", "-p", process, "-f", "1"},
		{"explain", "-p", process, "-f", "1", "--json"},
		{"__complete", "frames", "-p", ""},
	} {
		r := clitest.Run(t, args...)
		for _, out := range []string{r.Stdout, r.Stderr} {
			require.Equal(t, -1, strings.IndexFunc(out, func(r rune) bool {
				return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0
			}), "%v: %q", args, out)
		}
		if args[0] == "frames" {
			require.Contains(t, r.Stdout, "[31mred")
			r.Notes(t, 0, "no stack map")
		}
	}
}

// TestFilesAreNotObeyed requires that the text of a module or a layout is escaped for a terminal.
func TestFilesAreNotObeyed(t *testing.T) {
	t.Parallel()
	p := livetest.C(t, "nojit.c", nil)
	for flag, c := range map[string]struct {
		text, told string
		code       int
	}{
		"--ir":     {"define void @f() {\n  bogus \x1b[31m \"\x07\"\n}\n", "bogus", 2},
		"--layout": {"{\"schema\":\"\x1b[31m\"}", `invalid character '\x1b'`, 1}, // frames continues without the layout, so the status is 1
	} {
		r := clitest.Run(t, "frames", "-p", clitest.PID(p), flag, clitest.TempFile(t, "file", c.text))
		require.Equal(t, c.code, r.Code, r.Stderr)
		require.Contains(t, r.Stderr, c.told)
		require.NotContains(t, r.Stderr, clitest.Escape)
		require.NotContains(t, r.Stderr, "\x07")
	}
}

// fullDisks holds command lines of the verbs that print data. lint of a valid module prints data only with --json. PID and IR stand for a process and
// its module, TICK for the module that the command HOST runs.
var fullDisks = map[string][]string{
	"frames":     {"frames -p PID", "frames -p PID --json"},
	"roots":      {"roots -p PID", "roots -p PID --json", "roots -p PID --count"},
	"resume":     {"resume -p PID --ir IR", "resume -p PID --ir IR --json"},
	"maps":       {"maps -p PID", "maps -p PID --json"},
	"explain":    {"explain -p PID --ir IR #0", "explain -p PID --ir IR #0 --json", "explain -p PID --ir IR #0 --html -"},
	"lint":       {"lint IR --json"},
	"instrument": {"instrument IR"},
	"record":     {"record -p PID -o -"},
	"demo":       {"demo"},
	"gdb":        {"gdb"},
	"lldb":       {"lldb"},
	"debug":      {"debug -p PID --ir IR"},
	"protocol":   {"protocol check true", "protocol check true --json"},
	"stress":     {"stress --ir TICK --seed 1 -- HOST", "stress --ir TICK --seed 1 --json -- HOST"},
}

// toldElsewhere names the tests of full disks for the other verbs.
var toldElsewhere = map[string]string{
	"trace": "TestTraceFailedWrite", "verify": "TestVerifyFailedWrite", "replay": "TestReplayWithoutRoom", "run": "its output is the program's",
	"dap": "TestDAPKilled",
}

// TestOutputCannotBeWritten requires that every verb fails if it cannot write its data.
func TestOutputCannotBeWritten(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	p := livetest.Lli(t, 19, "jit_sp.ll", "mcjit")
	object, tick := clitest.TickObject(t)
	host := strings.Join(livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{}), " ")
	var lines [][]string
	for _, verb := range slices.Sorted(maps.Keys(fullDisks)) {
		for _, line := range fullDisks[verb] {
			lines = append(lines, strings.Fields(strings.NewReplacer("PID", clitest.PID(p), "IR", p.IR, "TICK", tick, "HOST", host).Replace(line)))
		}
	}
	for _, args := range lines {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		require.NoError(t, err)
		var stderr strings.Builder
		c := clitest.Command(t, args...)
		c.Stdout, c.Stderr = full, &stderr
		remain := marked(t, c)
		require.Error(t, c.Run())
		require.NoError(t, full.Close())
		clitest.Result{Code: c.ProcessState.ExitCode(), Stdout: "", Stderr: stderr.String()}.FailsEmpty(t, 2, "no space left on device")
		require.Empty(t, remain())
	}
	clitest.RequireUnharmed(t, p)
}
