package stackmap

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// fuzz parses bytes in one layout and both byte orders. It requires that maps that can be parsed can be written and parsed again.
func fuzz(f *testing.F, dialect Dialect) {
	for _, seed := range seeds(f) {
		if dialect == "" || seed.dialect == dialect {
			f.Add(seed.data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, order := range orders {
			s := parse(t, data, Options{order, dialect})
			use(t, s.Maps)
			for _, m := range s.Maps {
				require.LessOrEqual(t, m.Offset+m.Size, int64(len(data)))
				want := m.Blob()
				again, err := AppendBlob(nil, order, want)
				require.NoError(t, err)
				require.Len(t, again, int(m.Size))
				read, n, err := ParseOne(again, Options{order, m.Dialect})
				require.NoError(t, err)
				require.Equal(t, len(again), n)
				require.Equal(t, unplaced([]*Blob{want}), unplaced([]*Blob{read.Blob()}))
			}
			for _, d := range s.Also {
				_, err := Parse(data, Options{order, d})
				require.NoError(t, err, "a layout that was said to fit")
			}
			m, n, err := ParseOne(data, Options{order, dialect})
			require.Equal(t, err == nil, m != nil)
			require.LessOrEqual(t, n, len(data))
		}
	})
}

func FuzzParse(f *testing.F) { fuzz(f, "") }
func FuzzV1(f *testing.F)    { fuzz(f, V1) }
func FuzzV2(f *testing.F)    { fuzz(f, V2) }
func FuzzV3(f *testing.F)    { fuzz(f, V3) }
func FuzzYk(f *testing.F)    { fuzz(f, Yk) }
func FuzzYkOld(f *testing.F) { fuzz(f, YkOld) }

// FuzzWriter makes blobs out of random values, and requires that they can be written and parsed again.
func FuzzWriter(f *testing.F) {
	f.Add(uint64(1), uint64(2), false)
	f.Add(uint64(3), uint64(4), true)
	f.Fuzz(func(t *testing.T, a, b uint64, big bool) {
		order := byteOrder(binary.LittleEndian)
		if big {
			order = binary.BigEndian
		}
		r := rand.New(rand.NewPCG(a, b))
		for i := range layouts {
			roundTrip(t, r, &layouts[i], order)
		}
	})
}
