package gohost

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestCodeInMemory requires that the Go callers are shown for code that a host without C (CGO_ENABLED=0) has written to memory.
func TestCodeInMemory(t *testing.T) {
	p := livetest.Program(t, livetest.GoBinary(t, "testdata/mapped"))
	var frames []frame.Frame
	var end string
	require.Eventually(t, func() bool {
		for _, th := range goroutinesOf(t, "-p", clitest.PID(p)).Threads {
			if th.Goroutine != nil && th.Goroutine.Start == "main.worker" {
				frames, end = th.Frames, th.End
			}
		}
		return len(frames) > 0 && frames[0].Function == "" // wait until the thread runs that code
	}, livetest.Patience, 10*time.Millisecond)
	require.Empty(t, end)
	require.Equal(t, frame.JIT, frames[0].Kind)
	names := functionsOf(frames)
	require.Equal(t, []string{"", "main.call", "main.worker"}, names[:3])
	require.Equal(t, "runtime.goexit", names[len(names)-1])
	require.False(t, slices.ContainsFunc(frames, func(f frame.Frame) bool { return f.Guess != "" }))
}
