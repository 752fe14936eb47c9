package machine

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSinglesOfPower requires that each float is read back from a register of Power, which holds it as a double of the same value. For NaNs it requires the
// bits that the manual defines (Power ISA 3.1, book I, section 4.6.2: bits 0 and 1, and 5 to 34).
func TestSinglesOfPower(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	list := []uint32{0, 1 << 31, 1, 0x80000001, 0x7fffff, 0x800000, 0x807fffff, 0x400000, 0x3f800000, 0x7f7fffff, 0x7f800000, 0xff800000}
	for range 100_000 {
		list = append(list, random.Uint32(), random.Uint32()&0x807fffff) // the second has exponent 0
	}
	for _, arch := range []*Arch{PPC64, PPC64LE} {
		register := func(v uint64) uint32 {
			raw := make([]byte, 8)
			arch.Order.PutUint64(raw, v)
			b, ok := arch.Single(33, raw)
			require.True(t, ok)
			return arch.Order.Uint32(b)
		}
		for _, want := range list {
			if f := math.Float32frombits(want); f == f {
				require.Equal(t, want, register(math.Float64bits(float64(f))), "%x", want)
			}
		}
		for d, want := range map[uint64]uint32{0x7ff8000000000000: 0x7fc00000, 0x7ff4000000000000: 0x7fa00000, 0xfff0000020000000: 0xff800001, 0x7fffffffe0000000: 0x7fffffff} {
			require.Equal(t, want, register(d), "%x", d)
		}
		for _, other := range []DWARFReg{1, 31, 64, 77, 1203} {
			_, ok := arch.Single(other, make([]byte, 8))
			require.False(t, ok)
		}
	}
	require.Equal(t, binary.ByteOrder(binary.BigEndian), PPC64.Order)
}
