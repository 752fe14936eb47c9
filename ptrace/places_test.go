package ptrace

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

func TestPlaces(t *testing.T) {
	first := &Module{Path: "first", maps: []machine.Mapping{{Start: 0x1000, End: 0x2000}, {Start: 0x5000, End: 0x6000}}}
	second := &Module{Path: "second", maps: []machine.Mapping{{Start: 0x2000, End: 0x3000}, {Start: 0xfffffffffffff000, End: 0xffffffffffffffff}}}
	p := newPlaces([]*Module{second, {Path: "none"}, first})
	for _, c := range []struct {
		addr machine.Addr
		Want *Module
	}{
		{0, nil}, {0xfff, nil}, {0x1000, first}, {0x1fff, first}, {0x2000, second}, {0x2fff, second}, {0x3000, nil},
		{0x4fff, nil}, {0x5000, first}, {0x5fff, first}, {0x6000, nil}, {0xfffffffffffff000, second}, {0xffffffffffffffff, nil},
	} {
		r := p.at(c.addr)
		require.Equal(t, c.Want != nil, r != nil, "%v", c.addr)
		if r != nil {
			require.Same(t, c.Want, r.module, "%v", c.addr)
			require.True(t, r.Contains(c.addr))
		}
	}
	require.Nil(t, places(nil).at(0x1000))
}
