package ptrace

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBreakpointsThatAKilledTracerLeft requires that a session restores the code under breakpoints of an earlier session, whose processes were all
// killed. This must not depend on the address of the later session's breakpoint. After the later session the process must not have a handler of
// SIGTRAP.
func TestBreakpointsThatAKilledTracerLeft(t *testing.T) {
	for _, function := range []string{"site", "main"} {
		p := startTraps(t, "plain")
		killAll(t, p.trace(Breakpoint{}))
		s, err := Open(context.Background(), p.pid())
		require.NoError(t, err)
		require.NoError(t, s.Insert(Breakpoint{Addr: symbols(t, p.cmd.Path)[function]}))
		require.Empty(t, s.memory.unhandled)
		require.NoError(t, s.Detach())
		require.Equal(t, sumOfTraps, p.says("c"))
		require.Equal(t, "default", p.says("a"))
	}
}
