package stackmap

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

// TestFields requires, in every layout, that the fields of a record follow one another without a gap up to its end. They must have the values
// that the decoder reads.
func TestFields(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 22))
	seen := map[Part]int{}
	for i := range layouts {
		for range 300 {
			for _, order := range orders {
				data, err := AppendBlob(nil, order, anything(r, &layouts[i]))
				require.NoError(t, err)
				m, _, err := ParseOne(data, Options{Order: order, Dialect: layouts[i].dialect})
				require.NoError(t, err)
				check := func(f *Function) {
					for rec := range m.Records(f) {
						requireFields(t, m, rec, data, seen)
					}
				}
				for n := range m.Functions {
					f := &m.Functions[n]
					check(f)
					requireHead(t, m, f)
				}
				check(nil)
				for n := range m.NumConstants() {
					f := m.ConstantField(n)
					require.Equal(t, m.ConstantAt(n), m.Uint(f))
					require.Equal(t, data[f.Pos:][:8], f.Bytes)
				}
			}
		}
	}
	require.Greater(t, seen[InLocation], 1000)
	require.Greater(t, seen[InLiveOut], 1000)
}

func requireFields(t *testing.T, m *Map, rec *Record, data []byte, seen map[Part]int) {
	t.Helper()
	got := Record{Pos: rec.Pos}
	at := rec.Pos
	for f := range m.Fields(rec) {
		require.Equal(t, at, f.Pos)
		require.Equal(t, data[f.Pos:][:len(f.Bytes)], f.Bytes)
		at += int64(len(f.Bytes))
		seen[f.Part]++
		v := m.Uint(f)
		switch {
		case f.Part == InLocation && f.Name == "kind":
			require.Len(t, got.Locations, f.Index)
			got.Locations = append(got.Locations, Location{Kind: Kind(v)})
		case f.Part == InLiveOut && f.Name == "register":
			require.Len(t, got.LiveOuts, f.Index)
			got.LiveOuts = append(got.LiveOuts, LiveOut{Reg: machine.DWARFReg(v)})
		case f.Part == InLocation && f.Name == "size":
			got.Locations[f.Index].Size = uint16(v)
		case f.Part == InLocation && f.Name == "register":
			got.Locations[f.Index].Reg = machine.DWARFReg(v)
		case f.Part == InLocation && f.Name == "offset":
			got.Locations[f.Index].Offset = int32(v)
		case f.Part == InLiveOut && f.Name == "size":
			got.LiveOuts[f.Index].Size = uint8(v)
		case f.Name == "id":
			got.ID = RecordID(v)
		case f.Name == "instruction offset":
			got.Offset = uint32(v)
		case f.Part == InRecord && f.Name == "reserved":
			got.Flags = uint16(v)
		}
	}
	require.Equal(t, m.Offset+int64(m.end(int(rec.Pos-m.Offset))), at)
	want := *rec
	want.Vars, want.Extra = nil, nil
	require.Equal(t, want, got)
	for range m.Fields(rec) { // a caller may stop before the last field
		break
	}
}

func requireHead(t *testing.T, m *Map, f *Function) {
	t.Helper()
	said := map[Part]map[string]uint64{InHeader: {}, InFunction: {}}
	for x := range m.HeadFields(f) {
		said[x.Part][x.Name] = m.Uint(x)
	}
	require.EqualValues(t, []any{m.Version, len(m.Functions), m.NumConstants()}, []any{int(said[InHeader]["version"]), int(said[InHeader]["functions"]), int(said[InHeader]["constants"])})
	require.Equal(t, []uint64{uint64(f.Addr), f.StackSize}, []uint64{said[InFunction]["address"], said[InFunction]["stack size"]})
	if n, counted := said[InFunction]["records"]; counted {
		require.EqualValues(t, f.Len(), n)
	}
}

// TestFieldsOfSample requires the names of the fields at the start of a record.
func TestFieldsOfSample(t *testing.T) {
	m, _, err := ParseOne(sample(binary.LittleEndian), little)
	require.NoError(t, err)
	var names []string
	for rec := range m.Records(&m.Functions[0]) {
		for f := range m.Fields(rec) {
			names = append(names, f.Name)
		}
		break
	}
	require.Equal(t, []string{"id", "instruction offset", "reserved", "locations", "kind", "reserved", "size", "register", "reserved", "offset"}, names[:10])
}
