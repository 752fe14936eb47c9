package ptrace

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// claims starts testdata/claims.c, which registers objects that claim large untouched memory.
func claims(t *testing.T, args ...string) *livetest.Process {
	t.Helper()
	return livetest.C(t, "claims.c", []string{"-I" + livetest.Testdata(t, "..", "internal", "demo", "target")}, args...)
}

// counted is the memory of a process, and counts the bytes that are read from it.
type counted struct {
	*liveMemory
	bytes int
}

func (c *counted) ReadMemory(p []byte, addr machine.Addr) error {
	c.bytes += len(p)
	return c.liveMemory.ReadMemory(p, addr)
}

// TestClaims requires that untouched memory which an object claims increases neither the number of bytes that are read, nor the number of pages that
// reading allocates in the process. An object beyond the bounds must be refused, with a reason.
func TestClaims(t *testing.T) {
	for _, c := range []struct{ size, sections, bad string }{
		{"1024", "small", ""},
		{"200", "plain", ""},
		{"1024", "plain", "its headers and sections claim 1023 MiB; the limit for an object is 256 MiB"},
		{"1024", "overlapping", "its sections overlap: they claim 8581546078 bytes of its 1073741824"},
	} {
		t.Run(c.sections+" "+c.size, func(t *testing.T) {
			p := claims(t, "3", c.size, "zero", c.sections)
			look := func(target *Target, err error) {
				t.Helper()
				require.NoError(t, err)
				defer target.Close()
				require.Len(t, target.Registries, 1)
				require.Len(t, target.Registries[0].Entries, 3)
				for _, e := range target.Registries[0].Entries {
					require.Equal(t, c.bad, e.Bad)
					if require.Equal(t, c.bad == "", e.image != nil); e.image == nil {
						continue
					}
					mem := &counted{liveMemory: target.process}
					require.True(t, target.Registries[0].holds(e, mem))
					again, err := e.load(mem)
					require.NoError(t, err)
					require.Less(t, mem.bytes, 1<<20)
					require.Equal(t, e.content.zeroes, again.zeroes)
					var b [8]byte
					s := e.image.Section(".text")
					_, err = s.ReadAt(b[:], int64(s.Size)-8)
					require.NoError(t, err)
					require.Zero(t, b)
				}
			}
			look(Capture(p.PID, Options{}))
			look(Capture(p.PID, Options{Hold: true}))
			look(Survey(p.PID, Options{}))
			var resident int
			_, err := fmt.Sscanf(procFile(t, "%d/statm", p.PID), "%d %d", new(int), &resident)
			require.NoError(t, err)
			require.Less(t, resident, 4096, "pages of the process")
		})
	}
}

// TestMinimalCoreOfClaims requires that a minimal core omits objects that cannot be used, and objects with too much untouched memory, and that it
// counts the omitted ones.
func TestMinimalCoreOfClaims(t *testing.T) {
	for _, c := range []struct{ size, sections string }{{"3", "foreign"}, {"200", "plain"}} {
		t.Run(c.sections, func(t *testing.T) {
			p := claims(t, "3", c.size, "zero", c.sections)
			target, err := Capture(p.PID, Options{Record: true})
			require.NoError(t, err)
			defer target.Close()
			path := filepath.Join(t.TempDir(), "core")
			out, err := target.WriteCore(t.Context(), path, RecordOptions{Memory: Minimal})
			require.NoError(t, err)
			require.Contains(t, out.LeftOut, "3 registered JIT objects that no stack points into, or that are too large")
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.Less(t, info.Size(), int64(16<<20))
		})
	}
}

// TestClaimsWithPages requires that the pages of a large object that are in memory are read, and that a changed byte is detected.
func TestClaimsWithPages(t *testing.T) {
	p := claims(t, "1", "3", "noise", "plain")
	target, err := Survey(p.PID, Options{})
	require.NoError(t, err)
	defer target.Close()
	e := target.Registries[0].Entries[0]
	require.Empty(t, e.Bad)
	text, err := e.image.Section(".text").Data()
	require.NoError(t, err)
	require.Len(t, text, 2<<20)
	require.Equal(t, peek(t, p.PID, e.Start+1<<20, 2<<20), text)
	require.NotContains(t, text, byte(0))
	require.True(t, e.content.is(target.source))
	parts := e.content.parts.ranges
	parts[len(parts)-1].data[1<<20+5] ^= 1
	require.False(t, e.content.is(target.source))
}

// TestContent requires that a content returns the bytes that were read from the process and zeros for untouched ranges, and an error for all other
// parts.
func TestContent(t *testing.T) {
	c := &content{start: 0x1000, size: 40, zeroes: []machine.Range{{Start: 0x1008, End: 0x1010}}, parts: newCopied([]span{
		{0x1000, bytes.Repeat([]byte{1}, 8)}, {0x1010, bytes.Repeat([]byte{2}, 4)}, {0x1020, bytes.Repeat([]byte{3}, 8)},
	}, "")}
	for _, try := range []struct {
		off, size int
		want      []byte
		err       error
	}{
		{6, 12, []byte{1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2}, nil},
		{18, 4, []byte{2, 2}, io.ErrUnexpectedEOF},
		{24, 1, []byte{}, io.ErrUnexpectedEOF},
		{38, 4, []byte{3, 3}, io.EOF},
		{40, 1, []byte{}, io.EOF},
	} {
		b := bytes.Repeat([]byte{9}, try.size)
		n, err := c.ReadAt(b, int64(try.off))
		require.Equal(t, try.err, err)
		require.Equal(t, try.want, b[:n])
	}
}
