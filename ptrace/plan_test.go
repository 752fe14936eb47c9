package ptrace

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// TestPlan requires that a plan reads memory that a stop did not copy, reports it, and lists it for the next stop, which then copies it.
func TestPlan(t *testing.T) {
	p := livetest.C(t, "threads.c", nil, "2", "1", "2")
	target := capture(t, p.PID, Options{})
	maps, err := target.Mappings()
	require.NoError(t, err)
	var at machine.Addr
	for _, m := range maps {
		if m.Path == "[heap]" {
			at = m.Start + 100
		}
	}
	require.NotZero(t, at)
	var b [8]byte
	require.ErrorContains(t, target.ReadMemory(b[:], at), NotCopied)
	plan := target.Plan()
	require.False(t, plan.Missed())
	require.NoError(t, plan.ReadMemory(b[:], at))
	require.NoError(t, plan.ReadMemory(b[:], at+32))
	require.Error(t, plan.ReadMemory(b[:], 16))
	require.True(t, plan.Missed())
	also := plan.Join([]machine.Range{{Start: at + 4096, End: at + 4104}})
	require.Equal(t, []machine.Range{{Start: (at - 36), End: at + 92}, {Start: at + 4096, End: at + 4104}}, also)
	again := capture(t, p.PID, Options{Also: append(also, machine.Range{Start: 64, End: 128})})
	var copied [8]byte
	require.NoError(t, again.ReadMemory(copied[:], at))
	require.Equal(t, b, copied)
	plan = again.Plan()
	require.NoError(t, plan.ReadMemory(copied[:], at))
	require.False(t, plan.Missed())
}
