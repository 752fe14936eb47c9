package ptrace

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
)

// TestMinimalCoreLeavesOutTheEnvironment requires that a minimal core contains the environment of a process only on request, and that it contains
// the whole stacks either way.
func TestMinimalCoreLeavesOutTheEnvironment(t *testing.T) {
	secret := "correct-horse-battery-staple"
	t.Setenv("REFRAME_TEST_TOKEN", secret)
	p := livetest.Lli(t, 19, "jit_sp.ll", "mcjit")
	stacks := map[bool][][]byte{}
	for _, kept := range []bool{false, true} {
		target, err := Capture(p.PID, Options{Record: true})
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "core")
		_, err = target.WriteCore(t.Context(), path, RecordOptions{Memory: Minimal, Environment: kept})
		require.NoError(t, err)
		target.Close()
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, kept, bytes.Contains(content, []byte(secret)))
		core := openCore(t, path)
		for _, th := range core.threads {
			sp, err := th.Registers.Addr(core.arch.SP)
			require.NoError(t, err)
			stack := make([]byte, 512)
			require.NoError(t, core.ReadMemory(stack, sp))
			stacks[kept] = append(stacks[kept], stack)
		}
	}
	require.Equal(t, stacks[true], stacks[false])
}
