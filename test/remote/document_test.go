package remote_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

var commands = regexp.MustCompile("(?m)`(reframe [^`\n]*)`|^    (reframe .*)$")

// TestRemoteDocument requires that each command of doc/user/remote.md that names a target works. Commands inside of other debuggers have tests of
// their own.
func TestRemoteDocument(t *testing.T) {
	livetest.Slow(t)
	text, err := os.ReadFile("../../doc/user/remote.md")
	require.NoError(t, err)
	p := livetest.Lli(t, 19, "deoptimize.ll", "orc")
	dir := t.TempDir()
	recorded := filepath.Join(dir, "recorded.core")
	r := clitest.Run(t, "record", clitest.PID(p), "-o", recorded)
	require.Equal(t, 0, r.Code, r.Stderr)
	addr := gdbserver(t, p)
	ran := 0
	for _, m := range commands.FindAllStringSubmatch(string(text), -1) {
		line := strings.ReplaceAll(m[1]+m[2], `\|`, "|")
		switch {
		case line == "reframe frames", line == "reframe dap", strings.Contains(line, "--delve"), strings.Contains(line, "vgdb"):
			continue // TestValgrind runs the last one
		case strings.Contains(line, "gdbserver --once"), strings.HasPrefix(line, "reframe frames 41822"):
			continue // TestFramesThroughStubs runs both on a process that no other stub holds
		}
		ran++
		line = strings.NewReplacer("127.0.0.1:2345", addr, "host:2345", addr, "loop.ll", p.IR, "--core exit.core", "--core "+recorded, "exit.core", filepath.Join(dir, "exit.core")).Replace(line)
		r := clitest.RunInShell(t, line)
		require.Equal(t, 0, r.Code, "%s\n%s%s", line, r.Stdout, r.Stderr)
	}
	require.Equal(t, 6, ran)
}
