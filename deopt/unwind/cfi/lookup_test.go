package cfi

import (
	"debug/elf"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

// libLLVM returns the sections of a large library, read from its file on demand, and addresses in all parts of its code.
func libLLVM(b *testing.B) (Sections, []machine.Addr) {
	file, err := os.Open("/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1")
	require.NoError(b, err)
	b.Cleanup(func() { file.Close() })
	image, err := elf.NewFile(file)
	require.NoError(b, err)
	section := func(name string) Section {
		s := image.Section(name)
		return Section{Addr: machine.Addr(s.Addr), Data: s, Size: int64(s.Size)}
	}
	text := image.Section(".text")
	random := rand.New(rand.NewPCG(1, 2))
	pcs := make([]machine.Addr, 1<<14)
	for i := range pcs {
		pcs[i] = machine.Addr(text.Addr + random.Uint64N(text.Size))
	}
	return Sections{Arch: machine.AMD64, EHFrame: section(".eh_frame"), EHFrameHdr: section(".eh_frame_hdr")}, pcs
}

// BenchmarkFirstLookup measures the first lookup in a library, with nothing cached.
func BenchmarkFirstLookup(b *testing.B) {
	sections, pcs := libLLVM(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		table, err := NewTable(sections)
		require.NoError(b, err)
		lookup(b, table, pcs[i%len(pcs)])
	}
}

// BenchmarkLookup measures the first lookup of an address in a library in which other addresses were looked up before.
func BenchmarkLookup(b *testing.B) {
	sections, pcs := libLLVM(b)
	table, err := NewTable(sections)
	require.NoError(b, err)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		lookup(b, table, pcs[i%len(pcs)])
	}
}

func lookup(b *testing.B, table *Table, pc machine.Addr) {
	f, err := table.Find(pc)
	if err == nil {
		_, err = f.Rules(pc)
	}
	if err != nil && err != ErrNoFDE {
		b.Fatal(err)
	}
}

// BenchmarkRules measures only the computation of the row.
func BenchmarkRules(b *testing.B) {
	sections, pcs := libLLVM(b)
	table, err := NewTable(sections)
	require.NoError(b, err)
	type asked struct {
		fde *FDE
		pc  machine.Addr
	}
	var list []asked
	for _, pc := range pcs {
		if f, err := table.Find(pc); err == nil {
			list = append(list, asked{f, pc})
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		at := list[i%len(list)]
		if _, err := at.fde.Rules(at.pc); err != nil {
			b.Fatal(err)
		}
	}
}
