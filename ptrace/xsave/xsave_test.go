package xsave

import (
	"bytes"
	"encoding/binary"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

// TestWidths requires the register bytes at the offsets of Intel SDM vol. 1, 13.4: xmm is at offset 160, the upper halves of ymm are at 576, and in
// this layout those of zmm are at 1152.
func TestWidths(t *testing.T) {
	area := make([]byte, 2688)
	for i := range 16 {
		copy(area[160+16*i:], bytes.Repeat([]byte{byte(i) + 1}, 16))
		copy(area[576+16*i:], bytes.Repeat([]byte{byte(i) + 101}, 16))
		copy(area[1152+32*i:], bytes.Repeat([]byte{byte(i) + 201}, 32))
	}
	area[512] = 0xe7
	for _, c := range []struct {
		name     string
		features byte
		size     int
		layout   Layout
		width    int
	}{
		{"SSE alone", 0x3, len(area), Processors[0].Layout, 16},
		{"AVX", 0x7, len(area), Processors[0].Layout, 32},
		{"AVX-512", 0xe7, len(area), Processors[0].Layout, 64},
		{"AVX-512 whose place is not known", 0xe7, len(area), Layout{}, 32},
		{"cut before ymm", 0xe7, 576, Processors[0].Layout, 16},
		{"cut in ymm", 0xe7, 831, Processors[0].Layout, 16},
		{"cut before zmm", 0xe7, 1152, Processors[0].Layout, 32},
		{"as small as it gets", 0x3, 512, Processors[0].Layout, 16},
	} {
		b := bytes.Clone(area[:c.size])
		b[464] = c.features
		a := Area{Bytes: b, Layout: c.layout}
		a.Registers(func(reg machine.DWARFReg, got []byte, why error) {
			if reg < 17 || reg > 32 {
				return
			}
			require.NoError(t, why)
			i := byte(reg - 17)
			want := bytes.Repeat([]byte{i + 1}, 16)
			want = append(want, bytes.Repeat([]byte{i + 101}, 16)...)
			want = append(want, bytes.Repeat([]byte{i + 201}, 32)...)
			require.Equal(t, want[:c.width], got, "%s %d", c.name, i)
		})
	}
	for _, size := range []int{0, 511} {
		a := Area{Bytes: area[:size], Layout: Processors[0].Layout}
		require.ErrorContains(t, a.Check(), "no vector registers")
	}
}

// TestFind requires that each table matches XSAVE areas of the size that its processors have, and no areas of other sizes.
func TestFind(t *testing.T) {
	for _, c := range []struct {
		features uint64
		size     int
		k        uint32 // offset of k0
		found    bool
	}{
		{0x3, 576, 0, true}, {0x7, 832, 0, true}, {0x1f, 1088, 0, true}, {0xe7, 2688, 1088, true}, {0x2e7, 2696, 1088, true}, {0x2ff, 2696, 1088, true},
		{0x602e7, 11008, 1088, true}, {0x207, 2696, 0, true}, {0xe7, 2432, 832, true}, {0x2e7, 2440, 832, true}, {0x207, 2440, 0, true},
		{0xe7, 2440, 0, false}, {0x2e7, 2432, 0, false}, {0xe7, 2680, 0, false}, {0x207, 832, 0, false}, {0x207, 840, 0, false}, {1 << 30, 576, 0, false}, {0x3, 512, 0, false}, {0x3, 575, 0, false},
	} {
		area := make([]byte, c.size)
		binary.LittleEndian.PutUint64(area[464:], c.features)
		l, err := Find(area, 12000)
		require.Equal(t, c.found, err == nil, "%#x %d", c.features, c.size)
		if c.k != 0 {
			require.Equal(t, c.k, l[k].Offset)
		}
	}
}

// TestHost requires that CPUID lists the parts of this processor that the kernel lists, with the sizes that they have on all processors.
func TestHost(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		require.Equal(t, Layout{}, Host())
		return
	}
	info, err := os.ReadFile("/proc/cpuinfo")
	require.NoError(t, err)
	has := func(flag string) bool { return strings.Contains(string(info), " "+flag+" ") }
	l := Host()
	require.Equal(t, has("avx"), l[avx] == Place{576, 256})
	for part, flag := range map[int]string{k: "avx512f", zmm: "avx512f", z16: "avx512f"} {
		require.Equal(t, has(flag), l[part].Size == partSizes[part], "part %d", part)
	}
	parsed, err := Parse(l.Note())
	require.NoError(t, err)
	require.Equal(t, l, parsed)
}

func TestParse(t *testing.T) {
	row := func(words ...uint32) (b []byte) {
		for _, v := range words {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
		return b
	}
	l, err := Parse(row(2, 256, 576, 0, 9, 8, 2432, 1))
	require.NoError(t, err)
	require.Equal(t, Layout{avx: {576, 256}, pkru: {2432, 8}}, l)
	l, err = Parse(nil)
	require.NoError(t, err)
	require.Equal(t, Layout{}, l)
	for _, b := range [][]byte{row(2, 256, 576), row(63, 8, 576, 0), row(1<<31, 8, 576, 0), row(2, 256, 576, 0, 2, 256, 832, 0), make([]byte, 1024)} {
		_, err := Parse(b)
		require.Error(t, err)
	}
}

// FuzzArea requires that no core causes a read outside of an area, and that converted areas contain the same registers.
func FuzzArea(f *testing.F) {
	for _, p := range Processors {
		for _, features := range []uint64{0x7, 0xe7, 0x2e7, 0x602e7} {
			if end := p.Layout.end(features); end > 0 {
				area := make([]byte, end)
				for i := range area {
					area[i] = byte(i * 7)
				}
				binary.LittleEndian.PutUint64(area[464:], features)
				binary.LittleEndian.PutUint64(area[512:], features)
				binary.LittleEndian.PutUint64(area[520:], 0)
				f.Add(area, p.Layout.Note(), uint64(3376))
			}
		}
	}
	read := func(a *Area) map[machine.DWARFReg]string {
		list := map[machine.DWARFReg]string{}
		a.Registers(func(reg machine.DWARFReg, b []byte, why error) {
			if (b == nil) == (why == nil) {
				panic("neither a value nor a reason")
			}
			list[reg] = string(b)
		})
		return list
	}
	f.Fuzz(func(t *testing.T, area, note []byte, frame uint64) {
		if len(area) > 1<<16 {
			return
		}
		l, err := Parse(note)
		if err != nil {
			l, _ = Find(area, frame)
		}
		a := Area{Bytes: area, Layout: l}
		before := read(&a)
		moved, to := l.Standard([][]byte{area})
		a = Area{Bytes: moved[0], Layout: to}
		require.Equal(t, before, read(&a))
	})
}
