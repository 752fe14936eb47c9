package trace_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestTraceOverwritten requires that, for a program that overwrites breakpoints, trace reports that exits may be missing and exits with status 1.
// Debug registers can hold only four of the breakpoints.
func TestTraceOverwritten(t *testing.T) {
	t.Parallel()
	held := livetest.HeldPlaces(t)
	module := livetest.IR(t, 19, "patching.ll")
	run := func(sites string, args ...string) clitest.Result {
		program := livetest.PatchingCommand(t, 19, "aot", "once", 0, sites, 1, 20)
		c := clitest.Command(t, append(append([]string{"trace", "--ir", module}, args...), append([]string{"--"}, program.Args...)...)...)
		var out, text strings.Builder
		c.Stdin, c.Stdout, c.Stderr = strings.NewReader("\n"), &out, &text
		_ = c.Run() // the test checks its status
		return clitest.Result{Code: c.ProcessState.ExitCode(), Stdout: out.String(), Stderr: text.String()}
	}
	r := run("5")
	require.Equal(t, 1, r.Code, r.Stderr)
	require.Contains(t, r.Stdout, "called 120\n")
	require.Contains(t, r.Stderr, "reframe: the program has overwritten the breakpoint of record 104 at f4+0x10: exits there may be missing until it was set again\n")
	require.Contains(t, r.Stderr, fmt.Sprintf("exits may be missing: the program has overwritten breakpoints at %d places\n", 6-held))
	if held == 4 {
		r = run("3")
		require.Equal(t, 0, r.Code, r.Stderr)
		require.NotContains(t, r.Stderr, "overwritten")
		require.Contains(t, r.Stderr, "80 exits in ")
	}

	file := filepath.Join(t.TempDir(), "exits.json")
	r = run("5", "--json", "-o", file)
	require.Equal(t, 1, r.Code, r.Stderr)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	var summary struct{ Overwritten int }
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &summary))
	require.Equal(t, 6-held, summary.Overwritten)
	for _, line := range lines {
		clitest.RequireValid(t, "trace.schema.json", line)
	}

	p := livetest.PatchingCommand(t, 19, "aot", "once", 0, 5, 1, 20)
	stdin, err := p.StdinPipe()
	require.NoError(t, err)
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	_, err = out.Read(make([]byte, 1)) // wait until the program is ready
	require.NoError(t, err)
	r = clitest.Run(t, "trace", "--ir", module, "--dry-run", "-p", fmt.Sprint(p.Process.Pid))
	require.Equal(t, 0, r.Code, r.Stderr)
	stays := regexp.MustCompile(`(?m) (0x[0-9a-f]+) (stays |→ 0xcc)  f(\d)\+0x10 `).FindAllStringSubmatch(r.Stdout, -1)
	require.Len(t, stays, 6, r.Stdout)
	for n, match := range stays {
		require.Equal(t, fmt.Sprint(n), match[3])
		require.Equal(t, n < held, match[2] == "stays ")
	}
	r = clitest.Run(t, "trace", "--ir", module, "--dry-run", "--json", "-p", fmt.Sprint(p.Process.Pid))
	require.Equal(t, held, strings.Count(r.Stdout, `"hardware":true`))
	for line := range strings.Lines(r.Stdout) {
		clitest.RequireValid(t, "trace.schema.json", line)
	}
	require.NoError(t, stdin.Close())
	_, err = io.Copy(io.Discard, out)
	require.NoError(t, err)
	require.NoError(t, p.Wait())
}
