package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestHostDocument runs all commands of doc/user/host.md.
func TestHostDocument(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	typed := clitest.TypeDocument(t, "../../doc/user/host.md", clitest.Examples(t))
	for _, kind := range []string{"stackmap", "patchpoint", "statepoint", "deoptimize"} {
		require.Contains(t, typed, "./host-c "+kind+" &")
	}
}

// TestLayoutsDocument runs all commands of doc/user/layouts.md, with the programs and layouts that it shows.
func TestLayoutsDocument(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	files, err := filepath.Glob(livetest.Testdata(t, "programs") + "/vm*")
	require.NoError(t, err)
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(path)), text, 0o600))
	}
	clitest.TypeDocument(t, "../../doc/user/layouts.md", dir)
}

// TestBundleWithoutPass tests the statement in doc/user/host.md about a call with a "deopt" bundle that no pass has turned into a statepoint.
func TestBundleWithoutPass(t *testing.T) {
	t.Parallel()
	object := filepath.Join(t.TempDir(), "bundle.o")
	llc := exec.Command(livetest.LLVM(t, 19, "llc"), "-filetype=obj", "-o", object)
	llc.Stdin = strings.NewReader("declare i64 @f(i64)\ndefine i64 @work(i64 %i) {\n  %r = call i64 @f(i64 %i) [ \"deopt\"(i64 %i) ]\n  ret i64 %r\n}\n")
	require.NoError(t, clitest.RunAll(llc))
	require.Contains(t, clitest.Run(t, "maps", object).Stdout, "record 2882400015 ")
}
