package livetest

import (
	_ "embed"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Program runs any program and returns when it has printed "ready" on its own line. Its standard input stays open and empty.
func Program(t testing.TB, path string, args ...string) *Process {
	t.Helper()
	cmd := exec.Command(path, args...)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	t.Cleanup(func() { stdin.Close() })
	return start(t, cmd, onItsWay)
}

// CXXBinary builds one C++ source file with g++ and returns the path of the executable.
func CXXBinary(t testing.TB, source string, flags ...string) string {
	t.Helper()
	args := append([]string{"-O1", "-pthread", "-Wall", "-Wextra", "-Werror", source}, flags...)
	return build(t, recipe{
		output: strings.TrimSuffix(filepath.Base(source), filepath.Ext(source)),
		tool:   Tool(t, "g++"),
		args:   args,
		inputs: []string{source},
	})
}

// GoBinary builds the main package of a directory, which has one file, main.go, and returns the path of the executable.
func GoBinary(t testing.TB, dir string, flags ...string) string {
	t.Helper()
	dir, err := filepath.Abs(dir)
	require.NoError(t, err)
	return build(t, recipe{
		output: filepath.Base(dir),
		tool:   Tool(t, "go"),
		args:   append([]string{"build", "-C", dir, "-buildvcs=false"}, flags...),
		inputs: []string{filepath.Join(dir, "main.go")},
	})
}

// CgoBinary is like GoBinary, for a program that calls C.
func CgoBinary(t testing.TB, dir string, flags ...string) string {
	t.Helper()
	return CgoBinaryOf(t, "local", dir, flags...)
}

// toolchains lists the releases of Go that scripts/setup.sh downloads.
//
//go:embed toolchains.txt
var toolchains string

// GoReleases returns the newest release of each supported version of Go, such as go1.24.13.
func GoReleases() []string { return strings.Fields(toolchains) }

// CgoBinaryOf is like [CgoBinary], with a given release of Go.
func CgoBinaryOf(t testing.TB, release, dir string, flags ...string) string {
	t.Helper()
	dir, err := filepath.Abs(dir)
	require.NoError(t, err)
	return build(t, recipe{
		output: filepath.Base(dir),
		tool:   Tool(t, "env"),
		args:   append([]string{"CGO_ENABLED=1", "CC=gcc", "GOTOOLCHAIN=" + release, Tool(t, "go"), "build", "-C", dir, "-buildvcs=false"}, flags...),
		inputs: []string{filepath.Join(dir, "main.go")},
	})
}
