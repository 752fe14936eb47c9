package interp

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheDocumentListsTheLibrary requires that the list of functions in doc/user/interpreter.md matches the table. With DOC=update in the environment it
// writes the list.
func TestTheDocumentListsTheLibrary(t *testing.T) {
	const path, begin, end = "../../doc/user/interpreter.md", "<!-- library -->\n", "<!-- end -->"
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	head, rest, found := strings.Cut(string(text), begin)
	require.True(t, found)
	shown, tail, found := strings.Cut(rest, end)
	require.True(t, found)
	var names []string
	for _, name := range slices.Sorted(maps.Keys(libc)) {
		names = append(names, "`"+name+"`")
	}
	list := wrapped(strings.Join(names, " "))
	if os.Getenv("DOC") == "update" {
		require.NoError(t, os.WriteFile(path, []byte(head+begin+list+end+tail), 0o644))
		return
	}
	require.ElementsMatch(t, strings.Fields(list), strings.Fields(shown), "DOC=update writes the list")
}

// wrapped wraps a text into lines.
func wrapped(text string) string {
	var lines strings.Builder
	width := 0
	for _, w := range strings.Fields(text) {
		if width+len(w) > 130 {
			lines.WriteString("\n")
			width = 0
		} else if width > 0 {
			lines.WriteString(" ")
		}
		lines.WriteString(w)
		width += len(w) + 1
	}
	return lines.String() + "\n"
}
