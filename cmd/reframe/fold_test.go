package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	fold "example.com/reframe/internal/report/text"
	"example.com/reframe/test/livetest"
)

// A command that is copied from a narrow terminal is the original command.
func TestFoldCommand(t *testing.T) {
	livetest.NeedsTools(t)
	t.Parallel()
	words := []string{"resume", "-p", "41822", "--ir", "it's a long name of a file.ll", "--layout", `"$HOME"`, "--exe", "a\x01b  c", "-f", "2"}
	line := commandLine(words...)
	parts := fold.ShellWords(line)
	require.Equal(t, line, strings.Join(parts, " "))
	for _, width := range []int{20, 30, 40, 79, 1000} {
		broken := fold.FoldCommand(parts, width)
		out, err := exec.Command("sh", "-c", `reframe() { printf '%s\0' "$@"; }; `+broken).Output()
		require.NoError(t, err, broken)
		require.Equal(t, append(words, ""), strings.Split(string(out), "\x00"))
		for part := range strings.Lines(broken) {
			if !strings.ContainsAny(part, `'"`) {
				require.LessOrEqual(t, fold.Cells(strings.TrimSuffix(part, "\n")), width, broken)
			}
		}
	}
}

// Many bytes are printed in rows, each with its address.
func TestDumps(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	printChange(&b, frame.CommittedMemory{Address: "0xff8", Size: 20, Old: strings.Repeat("00", 20), New: strings.Repeat("0123456789abcdef", 2) + "01234567"})
	require.Equal(t, "  0xff8  0000000000000000 -> 0123456789abcdef\n  0x1000  0000000000000000 -> 0123456789abcdef\n  0x1008  00000000 -> 01234567\n", b.String())
	b.Reset()
	printChange(&b, frame.CommittedMemory{Address: "0x10", Size: 8, Old: "0000000000000000", New: "0123456789abcdef"})
	require.Equal(t, "  0x10  0000000000000000 -> 0123456789abcdef\n", b.String())
	require.Equal(t, []string{"01 02   a number"}, dumped("01 02", "a number"))
	long := strings.TrimSpace(strings.Repeat("ff ", 40))
	require.Equal(t, []string{long[:47], long[:47], long[:23], "a vector"}, dumped(long, "a vector"))
	require.Empty(t, dumped("", ""))
}
