package main_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
)

// The frames of a program that is stopped in code which it has patched are the same with --hold, and if the kernel does not tell which pages are
// private.
func TestFramesOfPatchedCode(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"text", "mem", "rwx", "relocated", "shared"} {
		p := livetest.C(t, filepath.Join("..", "ptrace", "testdata", "patched.c"), []string{"-pie", "-fPIE", "-Wl,-z,notext"}, kind)
		p.AwaitPause(t)
		shown := func(r result) string {
			t.Helper()
			require.Equal(t, 0, r.code, r.stderr)
			return regexp.MustCompile(`paused .*`).ReplaceAllString(r.stdout, "")
		}
		want := shown(reframe(t, "frames", "-p", pid(p)))
		require.Regexp(t, `(?m)^  #2   native  sled\+0x15$|^  #2   native  relocated\+0x11$`, want)
		require.Equal(t, want, shown(reframe(t, "frames", "-p", pid(p), "--hold")))
		c := command(t, "frames", "-p", pid(p))
		c.Path = livetest.Tool(t, "unshare")
		c.Args = []string{c.Path, "-m", "sh", "-c", fmt.Sprintf(`mount --bind /dev/null /proc/%d/pagemap && exec "$@"`, p.PID), "sh", binary, "frames", "-p", pid(p)}
		require.Equal(t, want, shown(finish(t, c)))
		unharmed(t, p)
	}
}
