package ir

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// opaque14 returns the flags with which LLVM 14 reads ptr; later releases need none.
func opaque14(version int) []string {
	if version == 14 {
		return []string{"-opaque-pointers"}
	}
	return nil
}

var versions = []int{14, 16, 19, 22}

// llvm runs a tool of an LLVM release and returns its output and whether it succeeded. A missing tool fails the test.
func llvm(t testing.TB, version int, tool string, args ...string) (stdout, stderr string, ok bool) {
	t.Helper()
	return livetest.Answer(t, fmt.Sprintf("%s-%d", tool, version), args...)
}

// opt runs opt -S over a file and returns the module it prints.
func opt(t testing.TB, version int, file string, args ...string) string {
	t.Helper()
	return made(t, version, "opt", append(args, "-S", file)...)
}

// made returns the output of a tool for files.
func made(t testing.TB, version int, tool string, args ...string) string {
	t.Helper()
	text, err := os.ReadFile(livetest.Made(t, fmt.Sprintf("%s-%d", tool, version), "made.ll", args...))
	require.NoError(t, err)
	return string(text)
}

func write(t testing.TB, name, src string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(src), 0o666))
	return path
}

// parse parses and checks a valid source.
func parse(t testing.TB, src string) *Module {
	t.Helper()
	m, err := Parse("test.ll", []byte(src))
	require.NoError(t, err)
	require.NoError(t, m.Check())
	return m
}

// programs returns the paths of the repository's shared programs.
func programs(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("../../../testdata/programs/*.ll")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}
