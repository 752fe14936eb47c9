package text

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
)

// TestDumps requires that many bytes are printed in rows, each with its address.
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
