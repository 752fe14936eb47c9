package main

import (
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"reframe/deopt/frame"
)

func TestFold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line  string
		width int
		want  []string
	}{
		{"short", 20, []string{"short"}},
		{"", 20, []string{""}},
		{"exactly twenty cells", 20, []string{"exactly twenty cells"}},
		{"one more than twenty.", 20, []string{"one more than", "    twenty."}},
		{"  set in by two and on", 20, []string{"  set in by two and", "      on"}},
		{"  label   what it is, at length", 24, []string{"  label   what it is, at", "          length"}},
		{"0123456789abcdef0123456789abcdef", 20, []string{"0123456789abcdef0123", "    456789abcdef"}},
		{"\x1b[1mbold and\x1b[0m then plain text", 20, []string{"\x1b[1mbold and\x1b[0m then plain", "    text"}},
		{"日本語の文字は二つのセルを取る", 20, []string{"日本語の文字は二つの", "    セルを取る"}},
		{"e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301", 20, []string{strings.Repeat("e\u0301", 20)}},
	} {
		require.Equal(t, c.want, fold(c.line, c.width, 4), c.line)
	}
}

// What is copied from a narrow terminal is the command that was meant.
func TestFoldCommand(t *testing.T) {
	t.Parallel()
	words := []string{"resume", "-p", "41822", "--ir", "it's a long name of a file.ll", "--layout", `"$HOME"`, "--exe", "a\x01b  c", "-f", "2"}
	line := commandLine(words...)
	parts := shellWords(line)
	require.Equal(t, line, strings.Join(parts, " "))
	for _, width := range []int{20, 30, 40, 79, 1000} {
		folded := foldCommand(parts, width)
		out, err := exec.Command("sh", "-c", `reframe() { printf '%s\0' "$@"; }; `+folded).Output()
		require.NoError(t, err, folded)
		require.Equal(t, append(words, ""), strings.Split(string(out), "\x00"))
		for part := range strings.Lines(folded) {
			if !strings.ContainsAny(part, `'"`) {
				require.LessOrEqual(t, cells(strings.TrimSuffix(part, "\n")), width, folded)
			}
		}
	}
}

// No text is lost, and no part too wide, whatever the line is.
func FuzzFold(f *testing.F) {
	f.Add("  #0   jit     tick+0x3b    record 1, stackmap", 30)
	f.Add("\x1b[1mbold\x1b[0m \x1b[", 20)
	f.Add("日本語 e\u0301", 21)
	f.Add("\x1b[1mb\tld\x1b\ay\x1b[0m \ay\x1b[", 2) // an escape that is none of a colour, before one that is
	f.Fuzz(func(t *testing.T, line string, width int) {
		width = narrowest + width&0xff
		if !utf8.ValidString(line) || strings.ContainsAny(line, "\n") {
			return
		}
		bare := func(s string) string { return strings.ReplaceAll(s, " ", "") }
		parts := fold(line, width, 4)
		require.Equal(t, bare(line), bare(strings.Join(parts, "")))
		for _, part := range parts {
			require.LessOrEqual(t, cells(part), width)
		}
	})
}

// Many bytes stand in rows, each with its own address.
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
