package ptrace

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

func TestParseObject(t *testing.T) {
	odd := filepath.Join(t.TempDir(), "a@b")
	require.NoError(t, os.WriteFile(odd, nil, 0o600))
	for text, want := range map[string]Object{
		"x.o":                 {Path: "x.o"},
		"x.o@0x7f00":          {Path: "x.o", Places: []Placement{{"", 0x7f00}}},
		"x.o@7f00":            {Path: "x.o", Places: []Placement{{"", 0x7f00}}},
		"d@e/x.o@10":          {Path: "d@e/x.o", Places: []Placement{{"", 0x10}}},
		"x.o@.text=0x10,f=20": {Path: "x.o", Places: []Placement{{".text", 0x10}, {"f", 0x20}}},
		"x.o@operator===0x10": {Path: "x.o", Places: []Placement{{"operator==", 0x10}}},
		odd:                   {Path: odd},
		odd + "@0x10":         {Path: odd, Places: []Placement{{"", 0x10}}},
	} {
		got, err := ParseObject(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"x.o@", "x.o@0", "x.o@z", "x.o@=10", "x.o@f=", "x.o@10,", "x.o@0x10000000000000000"} {
		_, err := ParseObject(text)
		require.ErrorAs(t, err, new(*ObjectError), text)
	}
}

// TestSearchForCode requires that code is found at any address, also across the boundary of two reads, and after bytes that resemble it.
func TestSearchForCode(t *testing.T) {
	object := livetest.Object(t, 19, "host_mod.ll")
	f, err := elf.Open(object)
	require.NoError(t, err)
	defer f.Close()
	text, err := f.Section(".text").Data()
	require.NoError(t, err)
	const start, size = machine.Addr(0x10000), 3*searchChunk + 123
	for _, at := range []int{0, 1, searchChunk - len(text), searchChunk - len(text) + 1, searchChunk - 7, searchChunk - 1, searchChunk, 2*searchChunk - 1, size - len(text)} {
		memory := make([]byte, size)
		copy(memory[at/2:], text[:len(text)-1]) // all bytes except the last one
		copy(memory[at:], text)
		target := &Target{arch: machine.AMD64, maps: []machine.Mapping{{Start: start, End: start + size, Read: true, Exec: true}},
			source: &coreMemory{regions: []region{{start: start, end: start + size, from: bytes.NewReader(memory)}}, limit: size}}
		require.NoError(t, target.reading().place([]Object{{Path: object}}), "at %d", at)
		require.Equal(t, start+machine.Addr(at), target.Given()[0].Section(".text").Loaded())
		require.True(t, target.reading().givenHold())
		require.NotNil(t, target.givenAt(start+machine.Addr(at)))
		require.Nil(t, target.givenAt(start+machine.Addr(at+len(text))))
		memory[at] ^= 1 // the runtime has overwritten the code since
		require.False(t, target.reading().givenHold())
		require.ErrorContains(t, target.reading().place([]Object{{Path: object}}), ".text was not found in 12288 KiB of code in memory")
		require.ErrorContains(t, target.reading().place([]Object{{object, []Placement{{"", start + machine.Addr(at)}}}}), "at offset 0x0 memory contains")
	}
}
