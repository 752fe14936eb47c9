package ptrace

import (
	"debug/elf"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/deopt/machine"
	"reframe/ptrace/guard"
)

// Every architecture whose processes are looked at has all tables, and the guard reads the register sets that are read here.
func TestLiveArchitecturesHaveAllTables(t *testing.T) {
	require.NotEmpty(t, registerSets)
	for a := range registerSets {
		require.NotEmpty(t, coreRegisters[a], "coreRegisters of %s", a.Title)
		require.NotZero(t, coreMachines[a], "coreMachines of %s", a.Title)
		require.NotEmpty(t, a.Trampolines, "Trampolines of %s", a.Title)
		require.True(t, a.Chain.Exists(), "Chain of %s", a.Title)
		named, ok := machine.ByName(a.Name)
		require.True(t, ok && named == a, "%s by its name", a.Title)
	}
	var kinds []elf.NType
	for _, set := range guard.OtherSets {
		kinds = append(kinds, elf.NType(set))
	}
	var want []elf.NType
	for _, set := range registerSets[arch][1:] {
		want = append(want, set.kind)
	}
	require.True(t, slices.Equal(want, kinds), "guard.OtherSets are %v, registerSets %v", kinds, want)
}
