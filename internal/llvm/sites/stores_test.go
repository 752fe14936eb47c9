package sites

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/llvm/ir"
)

// A pointer that is computed from itself, as only damaged IR has one, leads to no variable.
func TestPointerThatIsMadeOfItself(t *testing.T) {
	i := &ir.Instr{Op: ir.OpGEP}
	i.Args = []ir.Value{i}
	variable, apart := storedTo(i)
	require.Empty(t, variable)
	require.False(t, apart)
}
