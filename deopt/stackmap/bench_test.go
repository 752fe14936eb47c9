package stackmap

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

const million = 1_000_000

// big makes a section of layout V3 with n records, and with per records in each function. A record takes 112 bytes including its function's row
// if each has its own, otherwise 118.
func big(t testing.TB, n, per int) []byte {
	blob := &Blob{Version: 3, Dialect: V3}
	locations := []Location{
		{Kind: Constant, Size: 8}, {Kind: Constant, Size: 8}, {Kind: Constant, Size: 8, Offset: 2},
		{Kind: Register, Size: 8, Reg: 3}, {Kind: Indirect, Size: 8, Reg: 7, Offset: 8},
		{Kind: Direct, Size: 8, Reg: 7, Offset: 16}, {Kind: Direct, Size: 8, Reg: 7, Offset: 16},
	}
	if per == 1 {
		locations = locations[:5]
	}
	var list []Record
	r := rand.New(rand.NewPCG(1, 2))
	start, end := uint64(0x7f0000000000), uint64(0x7f0000000000)
	for i := range n {
		end += 5 + r.Uint64N(60) // code between two records, in bytes
		list = append(list, Record{ID: RecordID(i), Offset: uint32(end - start), Locations: locations})
		if len(list) == per || i == n-1 {
			blob.Functions = append(blob.Functions, BlobFunction{Addr: machine.Addr(start), StackSize: 24, Records: list})
			list, start = nil, end
		}
	}
	data, err := AppendBlob(nil, binary.LittleEndian, blob)
	require.NoError(t, err)
	return data
}

// shapes lists the measured numbers of records per function.
var shapes = []int{1, 4, million}

func BenchmarkParse(b *testing.B) {
	for _, per := range shapes {
		data := big(b, million, per)
		b.Run(fmt.Sprintf("per=%d", per), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, err := Parse(data, little); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkNewIndex(b *testing.B) {
	for _, per := range shapes {
		m := parsed(b, big(b, million, per))[0]
		b.Run(fmt.Sprintf("per=%d", per), func(b *testing.B) {
			for b.Loop() {
				NewIndex(m)
			}
		})
		if per == million {
			continue
		}
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(m.Functions), func(i, j int) {
			m.Functions[i].Addr, m.Functions[j].Addr = m.Functions[j].Addr, m.Functions[i].Addr
		})
		b.Run(fmt.Sprintf("per=%d/shuffled", per), func(b *testing.B) {
			for b.Loop() {
				NewIndex(m)
			}
		})
	}
}

// BenchmarkAt looks up random addresses that have a record. The code is in one range, or in three ranges far apart.
func BenchmarkAt(b *testing.B) {
	for _, per := range shapes {
		for _, places := range []int{1, 3} {
			if places > 1 && per == million {
				continue
			}
			m := parsed(b, big(b, million, per))[0]
			for i := range m.Functions {
				m.Functions[i].Addr += machine.Addr(i*places/len(m.Functions)) << 36
			}
			x := NewIndex(m)
			var addrs [1 << 16]machine.Addr
			r := rand.New(rand.NewPCG(1, 2))
			for i := range addrs {
				addrs[i] = machine.Addr(x.addrs.at(r.IntN(x.Len())))
			}
			b.Run(fmt.Sprintf("per=%d/places=%d", per, places), func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if x.At(addrs[i%len(addrs)]).Len() != 1 {
						b.Fatal("a record that is there was not found")
					}
				}
			})
		}
	}
}

func BenchmarkRecords(b *testing.B) {
	m := parsed(b, big(b, million, 4))[0]
	locations := 0
	for b.Loop() {
		for i := range m.Functions {
			for r := range m.Records(&m.Functions[i]) {
				locations += len(r.Locations)
			}
		}
	}
	require.NotZero(b, locations)
}

// TestResident requires that a section, its maps and their index together take at most one and a half times the memory of the section.
func TestResident(t *testing.T) {
	livetest.Slow(t)
	for _, per := range shapes {
		data := big(t, million, per)
		require.InDelta(t, 110, len(data)/million, 10, "bytes a record")
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		maps := parsed(t, data)
		x := NewIndex(maps...)
		runtime.GC()
		runtime.ReadMemStats(&after)
		beside := float64(after.HeapAlloc) - float64(before.HeapAlloc)
		t.Logf("%d records to a function: %d bytes a record and %.1f beside them", per, len(data)/million, beside/million)
		require.LessOrEqual(t, beside, 0.5*float64(len(data)), "%d records to a function", per)
		addr := machine.Addr(x.addrs.at(million / 2))
		require.Zero(t, testing.AllocsPerRun(100, func() { x.At(addr) }))
		require.Equal(t, 1, x.At(addr).Len())
		runtime.KeepAlive(maps)
	}
}
