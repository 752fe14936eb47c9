package ptrace

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"reframe/deopt/machine"
)

// Memory that is known to be zero is private and of no file, has no page of its own, and nobody provides its pages.
func TestUntouched(t *testing.T) {
	const size, touched = 64 << 20, 10 << 20
	p := program(t, "untouched.c", nil)
	at := map[string]machine.Addr{}
	for line := range strings.Lines(p.Output()) {
		var name string
		var addr uint64
		if n, _ := fmt.Sscanf(line, "%s %v", &name, &addr); n == 2 {
			at[name] = machine.Addr(addr)
		}
	}
	require.Len(t, at, 5, p.Output())
	target, err := Capture(p.PID, Options{Hold: true})
	require.NoError(t, err)
	defer target.Close()
	private := machine.Range{Start: at["private"], End: at["private"] + size}
	for range 2 { // to ask gives it no pages
		sum := uint64(0)
		for _, r := range target.Untouched() {
			require.True(t, r.End <= private.Start || r.Start >= private.End || r.Start >= private.Start && r.End <= private.End, "%v", r)
			for name, addr := range at {
				if name == "private" {
					require.False(t, r.Contains(addr+touched), "%v", r)
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
