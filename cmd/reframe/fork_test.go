package main_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
)

// A module of a fork of LLVM is read, each unknown word in it is reported once, and values have their names and types.
func TestModuleOfAFork(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(livetest.Testdata(t, "programs", "deoptimize.ll"))
	require.NoError(t, err)
	text := string(source)
	p := livetest.Lli(t, 19, write(t, "plain.ll", text), "mcjit")
	fork := strings.NewReplacer("define i64 @sum_opt(i64 %n, i64 %limit)", "define hotspotcc i64 @sum_opt(i64 jeandle_slot(0) %n, i64 %limit) jeandle_java", "call i64 @sum_opt(", "call hotspotcc i64 @sum_opt(").Replace(text)
	require.Equal(t, 2, strings.Count(fork, "hotspotcc"))
	path := write(t, "fork.ll", fork)
	r := reframe(t, "frames", "-p", pid(p), "--ir", path, "--layout", layout(t), "--json")
	require.Equal(t, 0, r.code, r.stderr)
	require.Equal(t, 1, strings.Count(r.stderr, "unknown calling convention 'hotspotcc'; where arguments and results are is not known of it"), r.stderr)
	require.Equal(t, 1, strings.Count(r.stderr, "unknown attribute 'jeandle_slot'; what it changes is not known"), r.stderr)
	require.Contains(t, r.stdout, `"name": "%acc"`)

	r = reframe(t, "lint", path, "--layout", layout(t))
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stdout, ": warning: unknown calling convention 'hotspotcc' (2 times); where arguments and results are is not known of it [unknown-word]\n")
	require.Contains(t, r.stdout, ": warning: unknown attribute 'jeandle_java'; ")
	require.NotContains(t, r.stderr, "unknown")
	valid(t, "lint.schema.json", reframe(t, "lint", path, "--layout", layout(t), "--json").stdout)

	r = reframe(t, "run", path)
	require.Contains(t, r.stderr, "unknown calling convention 'hotspotcc'")

	// The result register of an unknown calling convention is not guessed.
	r = reframe(t, "resume", "-p", pid(p), "--ir", path, "--layout", layout(t), "--commit", "--dry-run")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, "calling convention hotspotcc")
}
