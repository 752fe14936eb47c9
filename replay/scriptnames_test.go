package replay

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFirstScriptWords requires that a name from a target becomes one word of a script, or a comment, and never a command.
func TestFirstScriptWords(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"sum", "expect resume sum\n"},
		{"operator new", "expect resume 'operator new'\n"},
		{"it's", "expect resume 'it''s'\n"},
		{"$WORK", "expect resume '$WORK'\n"},
		{"#1", "expect resume '#1'\n"},
		{"", "expect resume ''\n"},
		{"f\nexec rm -r x", "# expect resume 'f exec rm -r x'\n"},
		{"f\r\x00\x1b[2J", "# expect resume 'f   [2J'\n"},
		{"-- file --", "expect resume '-- file --'\n"},
	} {
		s := &firstScript{}
		s.line("expect resume %s", Quoted(c.name))
		require.Equal(t, c.want, s.text.String())
	}
	s := &firstScript{}
	s.comment("a\nexec rm\r\n-- x --")
	require.Equal(t, "\n# a\n# exec rm \n# -- x --\n", s.text.String())
}
