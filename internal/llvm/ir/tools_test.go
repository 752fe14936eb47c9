package ir

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// opaque14 makes LLVM 14 read ptr; the later releases do by themselves.
func opaque14(version int) []string {
	if version == 14 {
		return []string{"-opaque-pointers"}
	}
	return nil
}

var versions = []int{14, 16, 19, 22}

// llvm runs a tool of one LLVM release and returns what it printed and whether it
// succeeded. A tool that is not installed fails the test.
func llvm(t testing.TB, version int, tool string, args ...string) (stdout, stderr string, ok bool) {
	t.Helper()
	return livetest.Answer(t, fmt.Sprintf("%s-%d", tool, version), args...)
}

// opt runs opt -S over a file and returns the module it prints.
func opt(t testing.TB, version int, file string, args ...string) string {
	t.Helper()
	return made(t, version, "opt", append(args, "-S", file)...)
}

// made is the text that a tool makes of files.
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

// parse parses and checks a source that must be good.
func parse(t testing.TB, src string) *Module {
	t.Helper()
	m, err := Parse("test.ll", []byte(src))
	require.NoError(t, err)
	require.NoError(t, m.Check())
	return m
}

// programs are the shared programs of the repository.
func programs(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("../../../testdata/programs/*.ll")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}
