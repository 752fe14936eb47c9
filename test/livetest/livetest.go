// Package livetest builds and starts the real processes that this module's tests inspect: LLVM's own lli, C hosts of the LLVM C API, and the C
// programs under testdata. Its main type is [Process].
//
// Nothing here is simulated. In make test, a missing tool fails the test with the command that installs it. A plain go test ./... skips the tests that
// need tools ([NeedsTools]). Built files are kept in the user's cache directory under a hash of everything they were built from, so that a second run
// compiles nothing.
//
// # Security
//
// The programs, compilers and sources are this repository's own and are trusted. Every process ends with the test that started it, or with the test
// binary.
package livetest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Tests parse the output of tools, so all programs that tests start use English messages, whatever the locale is.
func init() { os.Setenv("LC_ALL", "C") }

// LLVM returns the path of a tool of an LLVM release under its name in Debian: LLVM(t, 19, "llc") finds llc-19.
func LLVM(t testing.TB, version int, tool string) string {
	t.Helper()
	return Tool(t, fmt.Sprintf("%s-%d", tool, version))
}

// Testdata returns the absolute path of a file under this module's testdata directory.
func Testdata(t testing.TB, name ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{moduleRoot(t), "testdata"}, name...)...)
	_, err := os.Stat(path)
	require.NoError(t, err)
	return path
}

// moduleRoot returns the directory of go.mod. A test runs in its package's directory, so the root is above it.
func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		require.NotEqual(t, parent, dir, "no go.mod above the working directory")
		dir = parent
	}
}
