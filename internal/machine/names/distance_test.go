package names

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		far  int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "axc", 1}, {"abc", "ac", 1}, {"abc", "xabc", 1}, {"ab", "ba", 2},
		{"kitten", "sitting", 3}, {"saturday", "sunday", 3}, {"flaw", "lawn", 2}, {strings.Repeat("a", 1000), strings.Repeat("a", 2000), 0},
	} {
		require.Equal(t, c.far, Distance(c.a, c.b), c)
		require.Equal(t, c.far, Distance(c.b, c.a), c)
	}
}

func TestByDistance(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"acc", "ac", "acc1", "i", "x"}, ByDistance("acc", []string{"x", "acc1", "ac", "acc", "i"}))
	require.Empty(t, ByDistance("acc", nil))
}
