package trace

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/ptrace"
)

// TestNaming requires when a hit stops all threads for the names of VM frames.
func TestNaming(t *testing.T) {
	memory := []vmlayout.Part{{At: 0x700000, Data: []byte("name")}}
	changing := &vmlayout.NamesRead{Asked: true, Varying: true, Parts: memory}
	constant, failed := &vmlayout.NamesRead{Asked: true}, &vmlayout.NamesRead{Asked: true, Varying: true, Failed: true}
	type hit struct {
		read    *vmlayout.NamesRead
		held    bool
		state   namingState
		changed bool
	}
	for about, hits := range map[string][]hit{
		"constant memory":                {{constant, true, fixed, true}, {constant, false, fixed, false}},
		"constant memory can be written": {{constant, true, fixed, true}, {failed, false, varying, true}, {constant, true, varying, false}},
		"the same memory":                {{changing, true, foreseen, true}, {changing, false, foreseen, false}, {changing, true, foreseen, true}},
		"it cannot be read any more":     {{changing, true, foreseen, true}, {failed, false, varying, true}},
		"a method in a register":         {{&vmlayout.NamesRead{Asked: true, Varying: true, Computed: true, Parts: memory}, true, varying, true}},
		"too much memory":                {{&vmlayout.NamesRead{Asked: true, Varying: true, Parts: []vmlayout.Part{{Data: make([]byte, ptrace.MaxExpected+1)}}}, true, varying, true}},
		"too many parts":                 {{&vmlayout.NamesRead{Asked: true, Varying: true, Parts: make([]vmlayout.Part, ptrace.MaxExpects+1)}, true, varying, true}},
		"unreadable, may be mapped later": {{&vmlayout.NamesRead{Asked: true, Varying: true, Failed: true, Parts: []vmlayout.Part{{At: 0x700000, Data: []byte{0}, Lost: errors.New("not mapped")}}},
			true, varying, true}},
	} {
		var n naming
		for k, h := range hits {
			require.Equal(t, h.changed, n.read(h.read, h.held), "%s, hit %d", about, k)
			require.Equal(t, h.state, n.state, "%s, hit %d", about, k)
			require.Equal(t, h.state == foreseen, len(n.expects) > 0, "%s, hit %d", about, k)
		}
	}
	var n naming
	for k := range maxChanges {
		require.True(t, n.read(changing, true))
		require.Equal(t, foreseen, n.state, "change %d", k)
	}
	require.True(t, n.read(changing, true))
	require.Equal(t, varying, n.state)
}
