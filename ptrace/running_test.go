package ptrace

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// TestRunning requires that processes with JIT-compiled code come first, and that kernel threads are omitted.
func TestRunning(t *testing.T) {
	t.Parallel()
	plain := livetest.C(t, "nojit.c", nil)
	jit := livetest.Lli(t, 19, "jit_sp.ll", "orc")
	all := Running(livetest.Patience)
	at := func(pid int) int { return slices.IndexFunc(all, func(p Process) bool { return p.PID == pid }) }
	require.GreaterOrEqual(t, at(jit.PID), 0)
	require.GreaterOrEqual(t, at(plain.PID), 0)
	require.Less(t, at(jit.PID), at(plain.PID))
	require.True(t, all[at(jit.PID)].JIT)
	require.False(t, all[at(plain.PID)].JIT)
	require.Regexp(t, `^lli-19 -jit-kind=orc .*jit_sp.*\.ll$`, all[at(jit.PID)].Command)
	require.Equal(t, "nojit", all[at(plain.PID)].Command)
	require.Equal(t, -1, at(os.Getpid()))
	require.Equal(t, -1, at(2), "kthreadd, where the test sees it")
	for _, p := range all {
		require.NotEmpty(t, strings.TrimSpace(p.Command))
	}
	// With a time limit that has passed, no process is examined for JIT code, but all are listed.
	for _, p := range Running(-time.Second) {
		require.False(t, p.JIT)
	}
}
