package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/report/text"
	"example.com/reframe/test/livetest"
)

// TestFoldCommand requires that a command which is copied from a narrow terminal equals the original command.
func TestFoldCommand(t *testing.T) {
	livetest.NeedsTools(t)
	t.Parallel()
	words := []string{"resume", "-p", "41822", "--ir", "it's a long name of a file.ll", "--layout", `"$HOME"`, "--exe", "a\x01b  c", "-f", "2"}
	line := commandLine(words...)
	parts := text.ShellWords(line)
	require.Equal(t, line, strings.Join(parts, " "))
	for _, width := range []int{20, 30, 40, 79, 1000} {
		broken := text.FoldCommand(parts, width)
		out, err := exec.Command("sh", "-c", `reframe() { printf '%s\0' "$@"; }; `+broken).Output()
		require.NoError(t, err, broken)
		require.Equal(t, append(words, ""), strings.Split(string(out), "\x00"))
		for part := range strings.Lines(broken) {
			if !strings.ContainsAny(part, `'"`) {
				require.LessOrEqual(t, text.Cells(strings.TrimSuffix(part, "\n")), width, broken)
			}
		}
	}
}
