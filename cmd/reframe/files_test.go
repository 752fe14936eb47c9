package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestLaunchedHasAllFiles requires that a program which a verb launches inherits the same file descriptors above 2 as without reframe.
func TestLaunchedHasAllFiles(t *testing.T) {
	livetest.NeedsTools(t)
	livetest.Slow(t)
	t.Parallel()
	module := livetest.IR(t, 19, "tick.ll")
	dir := t.TempDir()
	file := func(name string) *os.File {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(name+"\n"), 0o600))
		f, err := os.Open(path)
		require.NoError(t, err)
		t.Cleanup(func() { f.Close() })
		return f
	}
	for name, gaps := range map[string][]bool{"from 3 on": {true, true}, "a gap": {true, true, false, true}, "not 3": {false, true}, "none": nil} {
		t.Run(name, func(t *testing.T) {
			var files []*os.File
			script := `cd /proc/$$/fd; echo *`
			for n, there := range gaps {
				if files = append(files, nil); there {
					number := string(rune('3' + n))
					files[n] = file("file " + number)
					script += "; cat <&" + number
				}
			}
			output := func(c *exec.Cmd) string {
				c.ExtraFiles = files
				for _, f := range files {
					if f != nil {
						_, err := f.Seek(0, 0)
						require.NoError(t, err)
					}
				}
				out, err := c.Output()
				if c.ProcessState.ExitCode() != 2 { // record exits with 2 because no exit occurred
					require.NoError(t, err)
				}
				return string(out)
			}
			want := output(exec.Command("sh", "-c", script))
			for _, verb := range []string{"trace", "verify", "record"} {
				args := []string{verb, "--ir", module}
				if verb == "record" {
					args = append(args, "--record", "1", "-o", filepath.Join(t.TempDir(), "exit.core"))
				}
				require.Equal(t, want, output(clitest.Command(t, append(args, "--", "sh", "-c", script)...)), verb)
			}
		})
	}
}
