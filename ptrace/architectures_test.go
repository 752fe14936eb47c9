package ptrace

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/regset"
)

// TestLiveArchitecturesHaveAllTables requires that each architecture whose processes are supported has all tables.
func TestLiveArchitecturesHaveAllTables(t *testing.T) {
	require.NotEmpty(t, regset.Sets)
	for a := range regset.Sets {
		require.NotEmpty(t, regset.Notes[a], "regset.Notes of %s", a.Title)
		require.NotZero(t, coreMachines[a], "coreMachines of %s", a.Title)
		require.NotEmpty(t, a.Trampolines, "Trampolines of %s", a.Title)
		require.True(t, a.Chain.Exists(), "Chain of %s", a.Title)
		named, ok := machine.ByName(a.Name)
		require.True(t, ok && named == a, "%s by its name", a.Title)
	}
}
