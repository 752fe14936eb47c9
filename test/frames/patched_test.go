package frames_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestFramesOfPatchedCode requires that a program stopped in code that it has patched has the same frames with and without --hold, also if the kernel
// does not report which pages are private.
func TestFramesOfPatchedCode(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"text", "mem", "rwx", "relocated", "shared"} {
		p := livetest.C(t, filepath.Join("..", "ptrace", "testdata", "patched.c"), []string{"-pie", "-fPIE", "-Wl,-z,notext"}, kind)
		p.AwaitPause(t)
		shown := func(r clitest.Result) string {
			t.Helper()
			require.Equal(t, 0, r.Code, r.Stderr)
			return regexp.MustCompile(`paused .*`).ReplaceAllString(r.Stdout, "")
		}
		want := shown(clitest.Run(t, "frames", "-p", clitest.PID(p)))
		require.Regexp(t, `(?m)^  #2   native  sled\+0x15$|^  #2   native  relocated\+0x11$`, want)
		require.Equal(t, want, shown(clitest.Run(t, "frames", "-p", clitest.PID(p), "--hold")))
		c := clitest.Command(t, "frames", "-p", clitest.PID(p))
		c.Path = livetest.Tool(t, "unshare")
		c.Args = []string{c.Path, "-m", "sh", "-c", fmt.Sprintf(`mount --bind /dev/null /proc/%d/pagemap && exec "$@"`, p.PID), "sh", clitest.Binary(), "frames", "-p", clitest.PID(p)}
		require.Equal(t, want, shown(clitest.Finish(t, c)))
		clitest.RequireUnharmed(t, p)
	}
}
