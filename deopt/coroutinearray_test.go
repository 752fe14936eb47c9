package deopt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestCoroutineOnAnArray requires that the stack of a coroutine is complete if it is right below the frames of another one.
func TestCoroutineOnAnArray(t *testing.T) {
	p := livetest.C(t, "../deopt/testdata/patchforms/coroutine.c", []string{"-O1", "-no-pie"})
	p.AwaitPause(t)
	v := frametest.Look(t, p, false, deopt.Options{})
	names := functionsOf(t, v)
	require.Equal(t, []string{"leaf", "co", "tramp"}, names[len(names)-3:])
	require.True(t, v.Threads[0].End.Complete, v.Threads[0].End.Reason)
}
