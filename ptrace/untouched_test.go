package ptrace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
	"example.com/reframe/test/livetest"
)

// untouched starts testdata/untouched.c, and returns the addresses of its memory of each kind.
func untouched(t *testing.T) (p *livetest.Process, at map[string]machine.Addr) {
	t.Helper()
	p, at = program(t, "untouched.c", nil), map[string]machine.Addr{}
	for line := range strings.Lines(p.Output()) {
		var name string
		var addr uint64
		if n, _ := fmt.Sscanf(line, "%s %v", &name, &addr); n == 2 {
			at[name] = machine.Addr(addr)
		}
	}
	require.Len(t, at, 5, p.Output())
	return p, at
}

// These values are those of testdata/untouched.c.
const size, touchedAt = 64 << 20, 10 << 20

// TestUntouched requires that memory reported as zero is private, belongs to no file, has no pages, and is not provided by userfaultfd.
func TestUntouched(t *testing.T) {
	p, at := untouched(t)
	target, err := Capture(p.PID, Options{Hold: true})
	require.NoError(t, err)
	defer target.Close()
	private := machine.Range{Start: at["private"], End: at["private"] + size}
	for range 2 { // the query must not allocate pages
		sum := uint64(0)
		for _, r := range target.Untouched() {
			require.True(t, r.End <= private.Start || r.Start >= private.End || r.Start >= private.Start && r.End <= private.End, "%v", r)
			for name, addr := range at {
				if name == "private" {
					require.False(t, r.Contains(addr+touchedAt), "%v", r)
				} else {
					require.False(t, addr != 0 && r.Start < addr+size && addr < r.End, "%v is %s", r, name)
				}
			}
			if private.Contains(r.Start) {
				sum += uint64(r.End - r.Start)
			}
		}
		require.GreaterOrEqual(t, sum, uint64(size-4<<20)) // a huge page has two mebibytes
	}
}

// TestAwaitedPages requires that no read waits for a page that userfaultfd must provide, whether a process is captured or traced. Such a page must be
// unavailable. A core must not contain it, because zeros would be a guess. Present pages must be read.
func TestAwaitedPages(t *testing.T) {
	livetest.Slow(t)
	p, at := untouched(t)
	if at["provided"] == 0 { // this kernel does not permit userfaultfd
		return
	}
	there, absent := at["provided"]+touchedAt, at["provided"]+touchedAt+elfcore.Page
	reads := func(t *testing.T, mem machine.Memory) {
		var page [elfcore.Page]byte
		require.NoError(t, mem.ReadMemory(page[:], there))
		require.EqualValues(t, 1, page[0])
		require.ErrorContains(t, mem.ReadMemory(page[:], absent), "not present: userfaultfd")
		require.ErrorContains(t, mem.ReadMemory(make([]byte, 2*elfcore.Page), there), "not present: userfaultfd")
		// For callers that read pages, and smaller parts if that fails.
		require.ErrorContains(t, mem.ReadMemory(page[:8], absent), "not present: userfaultfd")
	}
	core := func(t *testing.T, target *Target, memory CoreMemory) {
		path := filepath.Join(t.TempDir(), "core")
		_, err := target.WriteCore(t.Context(), path, RecordOptions{Memory: memory})
		require.NoError(t, err)
		c, err := OpenCore(path, CoreOptions{})
		require.NoError(t, err)
		defer c.Close()
		var b [8]byte
		require.Error(t, c.ReadMemory(b[:], absent))
		if memory == Minimal {
			return // pointers into memory that userfaultfd provides are not followed
		}
		require.NoError(t, c.ReadMemory(b[:], there))
		require.EqualValues(t, 1, b[0])
		require.NoError(t, c.ReadMemory(b[:], at["private"]), "which nobody has touched either")
	}
	for _, memory := range []CoreMemory{Minimal, Writable, All} {
		t.Run(fmt.Sprint("captured, ", memory), func(t *testing.T) {
			target, err := Capture(p.PID, Options{Hold: memory != Minimal, Record: true})
			require.NoError(t, err)
			defer target.Close()
			if memory != Minimal {
				reads(t, target)
			}
			core(t, target, memory)
		})
		t.Run(fmt.Sprint("under control, ", memory), func(t *testing.T) {
			s, err := Open(t.Context(), p.PID)
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Detach()) }()
			target, err := s.Target()
			require.NoError(t, err)
			reads(t, target)
			core(t, target, memory)
		})
	}
}

func TestFlagged(t *testing.T) {
	const text = `7f0000000000-7f0000001000 rw-p 00000000 00:00 0 
Size:                  4 kB
VmFlags: rd wr mr mw me ac um 
7f0000001000-7f0000002000 rw-p 00000000 00:00 0                          [stack]
VmFlags: rd wr mr mw me gd ac 
7f0000003000-7f0000005000 rw-p 00000000 00:00 0 
VmFlags: rd wr uw mr 
7f0000006000-7f0000007000 rw-s 00000000 00:01 7                          /dev/shm/VmFlags: um
VmFlags: rd wr mr ui
`
	got, err := flagged(strings.NewReader(text), "um", "uw", "ui")
	require.NoError(t, err)
	require.Equal(t, []machine.Range{{Start: 0x7f0000000000, End: 0x7f0000001000}, {Start: 0x7f0000003000, End: 0x7f0000005000}, {Start: 0x7f0000006000, End: 0x7f0000007000}}, got)
	_, err = flagged(iotest.ErrReader(os.ErrPermission), "um")
	require.ErrorIs(t, err, os.ErrPermission)
}
