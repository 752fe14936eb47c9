package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
)

// What differs from run to run: the process and how long it stood still.
var (
	numbered = regexp.MustCompile(`(process|pid|thread) \d+`)
	paused   = regexp.MustCompile(`paused \d+\.\d\d ms`)
)

func steady(screen string) string {
	return paused.ReplaceAllString(numbered.ReplaceAllString(screen, "$1 N"), "paused N ms")
}

// The README shows real screens: what its commands print, but for what differs from run
// to run. With README=update in the environment the screens are written anew.
func TestReadmeShowsRealScreens(t *testing.T) {
	const path, begin, end = "../../README.md", "```console\n$ ./reframe ", "```\n"
	dir := t.TempDir() // where its commands are run
	put(t, livetest.IR(t, 19, "deoptimize.ll"), filepath.Join(dir, "loop.ll"))
	put(t, livetest.Object(t, 19, "deoptimize.ll"), filepath.Join(dir, "loop.o"))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	parts := strings.Split(string(text), begin)
	for n, part := range parts[1:] {
		command, rest, _ := strings.Cut(part, "\n")
		shown, after, found := strings.Cut(rest, end)
		require.True(t, found)
		c := exec.Command(binary, strings.Fields(command)...)
		c.Dir = dir
		screen, err := c.CombinedOutput()
		require.NoError(t, err, command)
		if os.Getenv("README") == "update" {
			parts[n+1] = command + "\n" + string(screen) + end + after
			continue
		}
		require.Equal(t, steady(string(screen)), steady(shown), command)
	}
	require.Len(t, parts, 1+5)
	if os.Getenv("README") == "update" {
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(parts, begin)), 0o644))
	}
}

func put(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, b, 0o644))
}
