package text

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
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
		require.Equal(t, c.want, FoldLine(c.line, c.width, 4), c.line)
	}
}

// FuzzFold requires for any line that no text is lost, and that no part is too wide.
func FuzzFold(f *testing.F) {
	f.Add("  #0   jit     tick+0x3b    record 1, stackmap", 30)
	f.Add("\x1b[1mbold\x1b[0m \x1b[", 20)
	f.Add("日本語 e\u0301", 21)
	f.Add("\x1b[1mb\tld\x1b\ay\x1b[0m \ay\x1b[", 2) // an escape that does not set a colour, and an incomplete one
	f.Fuzz(func(t *testing.T, line string, width int) {
		width = narrowest + width&0xff
		if !utf8.ValidString(line) || strings.ContainsAny(line, "\n") {
			return
		}
		bare := func(s string) string { return strings.ReplaceAll(s, " ", "") }
		parts := FoldLine(line, width, 4)
		require.Equal(t, bare(line), bare(strings.Join(parts, "")))
		for _, part := range parts {
			require.LessOrEqual(t, Cells(part), width)
		}
	})
}
