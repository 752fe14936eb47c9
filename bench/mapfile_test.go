package main

import (
	"encoding/binary"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/test/livetest"
)

// TestMapFile requires that llvm-readobj reads the file that the benchmark writes, and finds the intended records.
func TestMapFile(t *testing.T) {
	const records = 1000
	blob := mapBlob(records)
	path := filepath.Join(t.TempDir(), "maps.o")
	size := mapFile(t, path, blob)
	require.Len(t, mapsOf(t, path), size)
	require.InDelta(t, 110, size/records, 5, "bytes a record, of 2.2 MB in 20,000")

	var want strings.Builder
	statepoints, liveOuts := 0, 0
	section, err := stackmap.Parse(mapsOf(t, path), stackmap.Options{Order: binary.LittleEndian})
	require.NoError(t, err)
	require.Len(t, section.Maps, 1)
	for _, f := range blob.Functions {
		require.NotEmpty(t, f.Records)
		for _, r := range f.Records {
			fmt.Fprintf(&want, "  Record ID: %d, instruction offset: %d\n    %d locations:\n", uint64(r.ID), r.Offset, len(r.Locations))
			require.GreaterOrEqual(t, len(r.Locations), 4)
			require.LessOrEqual(t, len(r.Locations), 8)
			if r.ID == statepointID {
				statepoints++
				_, ok := r.AsStatepoint()
				require.True(t, ok, "%+v", r)
			}
			if r.LiveOuts != nil {
				liveOuts++
			}
		}
	}
	require.InDelta(t, records/2, statepoints, records/10)
	require.InDelta(t, records/4, liveOuts, records/10)
	for _, version := range readobjs {
		out, err := exec.Command(livetest.LLVM(t, version, "llvm-readobj"), "--stackmap", path).Output()
		require.NoError(t, err)
		text := string(out)
		for _, line := range []string{"Num Constants: 64", fmt.Sprintf("Num Functions: %d", len(blob.Functions)), "Num Records: 1000"} {
			require.Contains(t, text, line+"\n")
		}
		heads := regexp.MustCompile(`  Record ID: .*\n    \d+ locations:\n`).FindAllString(text, -1)
		require.Equal(t, want.String(), strings.Join(heads, ""))
	}
	require.Equal(t, blob, mapBlob(records), "the same each time")
}

func TestCounter(t *testing.T) {
	for _, parts := range [][]string{
		{"\nab\nab"}, {"\na", "b\nab"}, {"\n", "a", "b", "\n", "a", "b"}, {"x\nab\na", "ab\nab", "\na"}, {"", "\nab\n", "ab"},
	} {
		c := counter{pattern: []byte("\nab")}
		for _, p := range parts {
			n, err := c.Write([]byte(p))
			require.NoError(t, err)
			require.Equal(t, len(p), n)
		}
		require.Equal(t, 2, c.n, "%q", parts)
	}
}
