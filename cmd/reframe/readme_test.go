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

// TestReadmeShowsRealScreens requires that the screens of README.md are the output of their commands, except for what varies between runs.
// README=update in the environment rewrites screens that differ.
func TestReadmeShowsRealScreens(t *testing.T) {
	livetest.Slow(t)
	typed := strings.Join(clitest.TypeDocument(t, "../../README.md", clitest.Examples(t)), "\n")
	for _, verb := range []string{"demo", "frames", "resume"} {
		require.Contains(t, typed, "reframe "+verb)
	}
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	require.Less(t, strings.Count(string(text), "\n"), 150)
}

// TestInsideShowsRealScreens requires the same as TestReadmeShowsRealScreens for doc/user/inside.md.
func TestInsideShowsRealScreens(t *testing.T) {
	livetest.Slow(t)
	typed := strings.Join(clitest.TypeDocument(t, "../../doc/user/inside.md", clitest.Examples(t)), "\n")
	for _, verb := range []string{"gdb", "frames", "resume", "record", "explain", "lldb"} {
		require.Contains(t, typed, "reframe "+verb)
	}
	require.Contains(t, typed, "-ex bt")
}

// TestCollectorShowsRealScreens requires the same as TestReadmeShowsRealScreens for doc/user/collector.md.
func TestCollectorShowsRealScreens(t *testing.T) {
	livetest.Slow(t)
	typed := strings.Join(clitest.TypeDocument(t, "../../doc/user/collector.md", clitest.Examples(t)), "\n")
	for _, verb := range []string{"record --at crashed", "roots crash.core", "lint --gc", "trace --visitor", "lint --gc gc/own.ll --gc-pointers"} {
		require.Contains(t, typed, "reframe "+verb)
	}
}

// TestTourShowsRealScreens requires the same as TestReadmeShowsRealScreens for doc/user/tour.md.
func TestTourShowsRealScreens(t *testing.T) {
	livetest.Slow(t)
	typed := strings.Join(clitest.TypeDocument(t, "../../doc/user/tour.md", clitest.Examples(t)), "\n")
	for _, verb := range []string{"frames", "resume", "run", "maps", "lint", "explain", "trace", "verify", "record", "replay", "debug"} {
		require.Contains(t, typed, "reframe "+verb)
	}
}

// TestVerbsShowRealScreens requires the same as TestReadmeShowsRealScreens for doc/user/verbs.md, whose screens show test programs of the repository.
func TestVerbsShowRealScreens(t *testing.T) {
	livetest.Slow(t)
	const path, begin, end = "../../doc/user/verbs.md", "```console\n$ ./reframe ", "```\n"
	dir := t.TempDir() // the commands run here
	clitest.CopyFile(t, livetest.IR(t, 19, "deoptimize.ll"), filepath.Join(dir, "loop.ll"))
	clitest.CopyFile(t, livetest.Object(t, 19, "deoptimize.ll"), filepath.Join(dir, "loop.o"))
	object, module := clitest.WrongTick(t)
	clitest.CopyFile(t, module, filepath.Join(dir, "tick.ll"))
	clitest.CopyFile(t, object, filepath.Join(dir, "wrong.o"))
	clitest.CopyFile(t, livetest.PICObject(t, 19, "tick.ll", "-O2"), filepath.Join(dir, "tick.o"))
	swapped := clitest.SwappedBundle(t)
	clitest.CopyFile(t, swapped+".ll", filepath.Join(dir, "sum.ll"))
	clitest.CopyFile(t, swapped+".o", filepath.Join(dir, "sum.o"))
	clitest.CopyFile(t, livetest.Testdata(t, "programs", "baseline.layout.json"), filepath.Join(dir, "sum.layout.json"))
	require.NoError(t, os.Symlink(livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{})[0], filepath.Join(dir, "host")))
	require.NoError(t, os.Symlink(clitest.Binary(), filepath.Join(dir, "reframe")))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	parts := strings.Split(string(text), begin)
	for n, part := range parts[1:] {
		command, rest, _ := strings.Cut(part, "\n")
		shown, after, found := strings.Cut(rest, end)
		require.True(t, found)
		c := exec.Command(livetest.Tool(t, "sh"), "-c", "./reframe "+command)
		c.Dir = dir
		screen, err := c.CombinedOutput()
		status := 0
		// These commands find a difference, so their status is not 0.
		if strings.HasPrefix(command, "verify ") || strings.HasPrefix(command, "stress ") {
			status = 3
		}
		require.Equal(t, status, c.ProcessState.ExitCode(), "%v: %s", err, command)
		parts[n+1] = command + "\n" + clitest.CompareScreen(t, shown, string(screen), clitest.WithoutTimes) + end + after
	}
	require.Len(t, parts, 1+12)
	if os.Getenv("README") == "update" {
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(parts, begin)), 0o644))
	}
}
