package verify

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// TestImageOfUntouchedMemory requires that untouched reserved memory is zero in an image and is not read: it still has no pages afterwards. The image
// must equal one for which all memory was read.
func TestImageOfUntouchedMemory(t *testing.T) {
	livetest.Slow(t)
	p := livetest.C(t, filepath.Join("..", "ptrace", "testdata", "untouched.c"), nil)
	target, err := ptrace.Capture(p.PID, ptrace.Options{Hold: true})
	require.NoError(t, err)
	defer target.Close()
	maps, err := target.Mappings()
	require.NoError(t, err)
	_, text, found := strings.Cut(p.Output(), "provided ")
	require.True(t, found)
	var provided uint64
	_, err = fmt.Sscanf(text, "%v", &provided)
	require.NoError(t, err)
	before := target.Untouched()
	require.NotEmpty(t, before)
	image, err := copyImage(target, maps, 0, nil)
	require.NoError(t, err)
	if provided != 0 { // a read of pages that userfaultfd provides would wait for them, except for the present page
		var page [imagePage]byte
		require.Zero(t, image.read(page[:], machine.Addr(provided)))
		require.Equal(t, imagePage, image.read(page[:], machine.Addr(provided+10<<20)))
		require.EqualValues(t, 1, page[0])
	}
	// Only partly untouched blocks may be read.
	less := func() uint64 { return sizeOf(before) - sizeOf(target.Untouched()) }
	few := uint64(2 * len(before) * imageBlock)
	require.LessOrEqual(t, less(), few)
	c := compareMemory(image, target, slices.Values([]interp.Touched(nil)), nil, machine.Range{}, false, func(uint64) bool { return false })
	require.NoError(t, c.why)
	require.Zero(t, c.Words)
	require.LessOrEqual(t, less(), few)

	read, err := copyImage(struct{ machine.Memory }{target}, maps, 0, nil)
	require.NoError(t, err)
	require.Less(t, len(image.blocks), len(read.blocks))
	for i := range read.blocks {
		b := &read.blocks[i]
		for at := 0; at < b.size; at += imagePage {
			var one, other [imagePage]byte
			require.Equal(t, read.read(one[:], b.addr+machine.Addr(at)), image.read(other[:], b.addr+machine.Addr(at)))
			require.Equal(t, one, other)
		}
	}
	require.Greater(t, less(), few, "reading is seen")
}

func sizeOf(parts []machine.Range) (sum uint64) {
	for _, r := range parts {
		sum += uint64(r.End - r.Start)
	}
	return sum
}
