package verify

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What was changed is told in words, those of bytes beside it too.
func TestChangesAreWords(t *testing.T) {
	was, now := make([]byte, 36), make([]byte, 36)
	now[9], now[18], now[35] = 1, 2, 3
	list := appendDifferent(nil, 0x1000, was, now)
	require.Equal(t, []changed{{addr: 0x1008, data: now[8:24]}, {addr: 0x1020, data: now[32:36]}}, list)
	require.Empty(t, appendDifferent(nil, 0x1000, now, now))
}
