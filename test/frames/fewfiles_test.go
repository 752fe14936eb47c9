package frames_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestFewFiles requires that reframe, if it may open only a few files, reports the unread ones instead of "registered no object", and shows what it
// could read.
func TestFewFiles(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "jit_sp.ll", "mcjit")
	limited := func(args ...string) clitest.Result {
		sh := append([]string{"-c", `ulimit -n 16; exec "$0" "$@"`, clitest.Binary()}, args...)
		return clitest.Finish(t, exec.CommandContext(t.Context(), livetest.Tool(t, "bash"), sh...))
	}
	for _, verb := range []string{"frames", "maps", "maps --check", "explain"} {
		r := limited(append(strings.Fields(verb), "-p", clitest.PID(p))...)
		require.Equal(t, 1, r.Code, "%s: %s", verb, r.Stderr)
		said := r.Stdout + r.Stderr
		require.Regexp(t, `\d+ of its \d+ files could not be opened: /\S+: too many open files; their contents, and objects that are registered in them, are unknown`, said, verb)
		require.NotContains(t, said, "nothing registered", verb)
		require.NotContains(t, said, "registered no object", verb)
	}
	// Even on a slow machine the trace ends only after it has read the files.
	r := limited("trace", "-p", clitest.PID(p), "--for", "1s")
	require.Equal(t, 2, r.Code, r.Stderr)
	require.Equal(t, 1, strings.Count(r.Stderr, "files could not be opened"), r.Stderr)
	clitest.RequireUnharmed(t, p)
}
