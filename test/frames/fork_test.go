package frames_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestModuleOfAFork requires that a module of a fork of LLVM is read, that each unknown word is reported once, and that values have their names and
// types.
func TestModuleOfAFork(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(livetest.Testdata(t, "programs", "deoptimize.ll"))
	require.NoError(t, err)
	text := string(source)
	p := livetest.Lli(t, 19, clitest.TempFile(t, "plain.ll", text), "mcjit")
	fork := strings.NewReplacer("define i64 @sum_opt(i64 %n, i64 %limit)", "define hotspotcc i64 @sum_opt(i64 jeandle_slot(0) %n, i64 %limit) jeandle_java", "call i64 @sum_opt(", "call hotspotcc i64 @sum_opt(").Replace(text)
	require.Equal(t, 2, strings.Count(fork, "hotspotcc"))
	path := clitest.TempFile(t, "fork.ll", fork)
	r := clitest.Run(t, "frames", "-p", clitest.PID(p), "--ir", path, "--layout", clitest.DeoptimizeLayout(t), "--json")
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Equal(t, 1, strings.Count(r.Stderr, "unknown calling convention 'hotspotcc'; the places of its arguments and results are unknown"), r.Stderr)
	require.Equal(t, 1, strings.Count(r.Stderr, "unknown attribute 'jeandle_slot'; its effect is unknown; it is ignored"), r.Stderr)
	require.Contains(t, r.Stdout, `"name": "%acc"`)

	r = clitest.Run(t, "lint", path, "--layout", clitest.DeoptimizeLayout(t))
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Contains(t, r.Stdout, ": warning: unknown calling convention 'hotspotcc' (2 times); the places of its arguments and results are unknown [unknown-word]\n")
	require.Contains(t, r.Stdout, ": warning: unknown attribute 'jeandle_java'; ")
	require.NotContains(t, r.Stderr, "unknown")
	clitest.RequireValid(t, "lint.schema.json", clitest.Run(t, "lint", path, "--layout", clitest.DeoptimizeLayout(t), "--json").Stdout)

	r = clitest.Run(t, "run", path)
	require.Contains(t, r.Stderr, "unknown calling convention 'hotspotcc'")

	// The result register of an unknown calling convention must not be guessed.
	r = clitest.Run(t, "resume", "-p", clitest.PID(p), "--ir", path, "--layout", clitest.DeoptimizeLayout(t), "--commit", "--dry-run")
	require.Equal(t, 2, r.Code)
	require.Contains(t, r.Stderr, "calling convention hotspotcc")
}
