package ptrace

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
)

// TestReadsBelowStack requires that reading below a stack fails and leaves the stack's mapping unchanged. Reading /proc/PID/mem there would make the
// kernel grow the stack, so that the process would get memory that it never used.
func TestReadsBelowStack(t *testing.T) {
	p := program(t, "leader.c", nil)
	stack := func() machine.Mapping {
		maps, err := readMaps(p.PID)
		require.NoError(t, err)
		n := slices.IndexFunc(maps, func(m machine.Mapping) bool { return m.Path == "[stack]" })
		require.GreaterOrEqual(t, n, 0)
		return maps[n]
	}
	before := stack()
	look := func(target *Target, err error) {
		require.NoError(t, err)
		defer target.Close()
		for _, size := range []int{8, elfcore.Page, 16 * elfcore.Page} {
			for _, below := range []machine.Addr{8, elfcore.Page, 4 * elfcore.Page} {
				require.Error(t, target.ReadMemory(make([]byte, size), before.Start-below))
			}
		}
		require.Equal(t, before, stack())
	}
	look(Capture(p.PID, Options{}))
	look(Capture(p.PID, Options{Hold: true}))
	look(Survey(p.PID, Options{}))
}
