package verify

import (
	"testing"
	"time"

	"example.com/reframe/internal/check/trace"

	"github.com/stretchr/testify/require"
)

// TestVerifyReasons requires that reasons that differ only in an address are counted together, and that the most frequent comes first.
func TestVerifyReasons(t *testing.T) {
	s := &Summary{Reasons: map[string]uint64{}}
	for _, why := range []string{
		"it calls @time", "memory: the page at 0x7f0012345000 cannot be read", "memory: the page at 0x1000 cannot be read",
		"its stack, at 0x7ffe00, is not mapped", "it ran 1000 instructions", "it ran 2000 instructions",
	} {
		s.add(&Verified{Status: NotComparable, Why: why})
	}
	s.add(&Verified{Status: Same})
	s.add(&Verified{Status: Different})
	s.finish(trace.End{Kind: trace.EndLimit}, 1500*time.Millisecond)
	require.Equal(t, []string{
		"memory: the page at 0x… cannot be read", "it calls @time", "it ran 1000 instructions", "it ran 2000 instructions", "its stack, at 0x…, is not mapped",
	}, s.Why())
	require.Equal(t, uint64(2), s.Reasons["memory: the page at 0x… cannot be read"])
	require.Equal(t, []uint64{1, 1, 6}, []uint64{s.Same, s.Different, s.NotComparable})
	require.Equal(t, 1.5, s.Seconds)
}
