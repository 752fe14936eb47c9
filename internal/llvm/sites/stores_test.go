package sites

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/llvm/ir"
)

// TestPointerThatIsMadeOfItself requires that a pointer that is computed from itself, as in broken IR, points to no variable.
func TestPointerThatIsMadeOfItself(t *testing.T) {
	i := &ir.Instr{Op: ir.OpGEP}
	i.Args = []ir.Value{i}
	variable, apart := storedTo(i)
	require.Empty(t, variable)
	require.False(t, apart)
}
