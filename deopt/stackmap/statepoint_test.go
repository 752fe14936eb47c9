package stackmap

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStatepoint requires the locations that the record of the call in jit_sp.ll has after rewrite-statepoints-for-gc: 13 deopt values, and pairs for
// %o2, %der, %o and the null of the deopt bundle, which is its own base. llc chooses the spill slots; equal values have the same location.
func TestStatepoint(t *testing.T) {
	for _, version := range []int{14, 16, 19, 22} {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			m := parsed(t, section(t, object(t, version, "jit_sp.ll")))[0]
			s, ok := m.Blob().Functions[0].Records[0].AsStatepoint()
			require.True(t, ok)
			require.Empty(t, m.Blob().Functions[0].Records[0].LiveOuts)
			require.Zero(t, s.CallConv)
			require.Zero(t, s.Flags)
			require.Len(t, s.Deopt, 13)
			constants := map[int]uint64{0: 11, 1: 2, 6: 1<<64 - 9, 7: 81985529216486895, 10: 0, 12: 0x3fc00000}
			for i, l := range s.Deopt {
				want, isConstant := constants[i]
				v, err := m.Constant(l)
				require.Equal(t, isConstant, err == nil, "deopt value %d", i)
				require.Equal(t, want, v, "deopt value %d", i)
			}
			// Sizes of %x, %y, %e, %c, %o, %der: i64, i32, double, i8 and two pointers.
			for i, size := range map[int]uint16{2: 8, 3: 4, 4: 8, 5: 1, 8: 8, 9: 8} {
				require.Equal(t, Indirect, s.Deopt[i].Kind)
				require.Equal(t, size, s.Deopt[i].Size)
			}
			require.Equal(t, Direct, s.Deopt[11].Kind, "%%slot is an alloca")
			require.Empty(t, s.Allocas, "%%slot is in the deopt bundle alone")
			require.Len(t, s.Pairs, 4)
			o, der := s.Deopt[8], s.Deopt[9]
			var seen []Location
			for _, p := range s.Pairs {
				require.Equal(t, p.Base, p.Derived)
				seen = append(seen, p.Base)
			}
			require.Contains(t, seen, o)
			require.Contains(t, seen, der)
			null := Location{Kind: Constant, Size: 8}
			require.Contains(t, seen, null)
		})
	}
}

// TestStatepointAlloca requires the contents of the statepoint of @transition in shapes.ll: flag 1, one deopt value, one alloca and no gc pointer.
func TestStatepointAlloca(t *testing.T) {
	for _, version := range []int{16, 19, 22} {
		m := parsed(t, section(t, object(t, version, "testdata/shapes.ll")))[0]
		s, ok := m.Blob().Functions[len(m.Functions)-1].Records[0].AsStatepoint()
		require.True(t, ok)
		require.Equal(t, uint64(1), s.Flags)
		require.Len(t, s.Deopt, 1)
		require.Empty(t, s.Pairs)
		require.Len(t, s.Allocas, 1)
		require.Equal(t, Direct, s.Allocas[0].Kind)
	}
}

func TestAsStatepoint(t *testing.T) {
	c := func(v int32) Location { return Location{Kind: Constant, Size: 8, Offset: v} }
	slot := Location{Kind: Indirect, Size: 8, Reg: 7, Offset: 8}
	other := Location{Kind: Indirect, Size: 8, Reg: 7, Offset: 16}
	alloca := Location{Kind: Direct, Size: 8, Reg: 7, Offset: 24}
	for _, k := range []struct {
		name string
		in   []Location
		want Statepoint
		ok   bool
	}{
		{"empty", nil, Statepoint{}, false},
		{"two constants", []Location{c(0), c(0)}, Statepoint{}, false},
		{"a value first", []Location{slot, c(0), c(0)}, Statepoint{}, false},
		{"nothing live", []Location{c(0), c(0), c(0)}, Statepoint{Deopt: []Location{}, Allocas: []Location{}}, true},
		{"a calling convention and flags", []Location{c(1023), c(3), c(2), slot, other},
			Statepoint{CallConv: 1023, Flags: 3, Deopt: []Location{slot, other}, Allocas: []Location{}}, true},
		{"past the last calling convention", []Location{c(1024), c(0), c(1), slot}, Statepoint{}, false},
		{"flags that there are not", []Location{c(0), c(4), c(1), slot}, Statepoint{}, false},
		{"head in the table", []Location{c(8), c(1), {Kind: ConstantIndex, Offset: 0}, slot, other}, Statepoint{}, false},
		{"count past the end", []Location{c(0), c(0), c(2), slot}, Statepoint{}, false},
		{"count of all bits", []Location{c(0), c(0), c(-1), slot}, Statepoint{}, false},
		{"count of 2^40", []Location{c(0), c(0), {Kind: ConstantIndex, Offset: 1}, slot}, Statepoint{}, false},
		{"a base without its pointer", []Location{c(0), c(0), c(0), slot}, Statepoint{}, false},
		{"pairs, then an alloca", []Location{c(0), c(0), c(1), alloca, slot, other, slot, slot, alloca},
			Statepoint{Deopt: []Location{alloca}, Pairs: []Pair{{slot, other}, {slot, slot}}, Allocas: []Location{alloca}}, true},
		{"two allocas", []Location{c(0), c(0), c(0), alloca, alloca}, Statepoint{Deopt: []Location{}, Allocas: []Location{alloca, alloca}}, true},
	} {
		got, ok := (&Record{Locations: k.in}).AsStatepoint()
		require.Equal(t, k.ok, ok, k.name)
		require.Equal(t, k.want, got, k.name)
	}
}
