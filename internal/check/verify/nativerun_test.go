package verify

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
)

// TestNativeRunAddsUp requires that the counts of runs are added, that the first signal and the last instructions are kept, and that each call is
// listed once.
func TestNativeRunAddsUp(t *testing.T) {
	var n nativeRun
	require.Empty(t, n.raisedReason())
	n.add(&ptrace.SingleThreadRun{Steps: 3, Outside: time.Microsecond, Tail: []machine.Addr{1, 2, 3}}, 4)
	n.add(&ptrace.SingleThreadRun{Steps: 2, Signal: int(syscall.SIGSEGV), Handling: true, Tail: []machine.Addr{4, 5}}, 4)
	n.add(&ptrace.SingleThreadRun{Signal: int(syscall.SIGFPE)}, 4)
	require.Equal(t, []machine.Addr{2, 3, 4, 5}, n.tail)
	require.Equal(t, "native code raised SIGSEGV", n.raisedReason())
	require.False(t, n.handling)
	require.Equal(t, uint64(5*1000+1000*50), n.atMost())
	require.False(t, n.ranOutside)
	n.addCalls(nil)
	require.False(t, n.ranOutside)
	n.addCalls([]machine.Addr{7, 8})
	n.addCalls([]machine.Addr{8, 9})
	require.True(t, n.ranOutside)
	require.Equal(t, []machine.Addr{7, 8, 9}, n.called)
}
