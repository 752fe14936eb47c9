package verify

import (
	"errors"
	"testing"
	"time"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/machine"

	"github.com/stretchr/testify/require"
)

// TestVerifyReasons requires that reasons that differ only in an address are counted together, and that the most frequent reason comes first.
func TestVerifyReasons(t *testing.T) {
	s := &Summary{Reasons: map[string]uint64{}}
	unreadable := func(at machine.Addr) error { return frame.Errorf("the page at %v cannot be read", at) }
	for _, why := range []error{
		errors.New("it calls @time"), frame.Errorf("memory: %w", unreadable(0x7f0012345000)), frame.Errorf("memory: %w", unreadable(0x1000)),
		frame.Errorf("its stack, at %v, is not mapped", machine.Addr(0x7ffe00)), errors.New("it ran 1000 instructions"), errors.New("it ran 2000 instructions"),
	} {
		v := &Verified{}
		v.notComparable(why)
		s.add(v)
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
