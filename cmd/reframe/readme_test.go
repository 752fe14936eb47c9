package main_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What differs from run to run: the process and how long it stood still.
var (
	numbered = regexp.MustCompile(`(process|pid|thread) \d+`)
	paused   = regexp.MustCompile(`paused \d+\.\d\d ms`)
)

func steady(screen string) string {
	return paused.ReplaceAllString(numbered.ReplaceAllString(screen, "$1 N"), "paused N ms")
}

// The README shows a real screen: what the demo prints, but for what differs from run to
// run. With README=update in the environment the screen is written anew.
func TestReadmeShowsTheDemo(t *testing.T) {
	const path, begin, end = "../../README.md", "$ ./reframe demo\n", "```\n"
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	head, rest, found := strings.Cut(string(text), begin)
	require.True(t, found)
	shown, tail, found := strings.Cut(rest, end)
	require.True(t, found)
	screen := reframe(t, "demo").stdout
	if os.Getenv("README") == "update" {
		require.NoError(t, os.WriteFile(path, []byte(head+begin+screen+end+tail), 0o644))
		return
	}
	require.Equal(t, steady(screen), steady(shown))
}
