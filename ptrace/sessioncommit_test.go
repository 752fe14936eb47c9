package ptrace

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What the kernel says of a thread's shadow stack (Linux, arch/x86/kernel/cpu/proc.c).
func TestShadowStack(t *testing.T) {
	for features, want := range map[string]bool{"": false, "shstk": true, "shstk wrss": true, "wrss": false} {
		require.Equal(t, want, hasShadowStack(features), features)
	}
}
