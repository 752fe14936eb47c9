package ptrace

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/system"
	"example.com/reframe/test/livetest"
)

func TestCopied(t *testing.T) {
	text := func(s string) []byte { return []byte(s) }
	c := newCopied([]span{
		{0x2000, text("klm")}, {0x1000, text("abc")}, {0x1003, text("def")}, {0x1002, text("cdefg")}, {0x1001, text("b")}, {0x3000, nil},
	}, "because")
	for _, k := range []struct {
		addr machine.Addr
		n    int
		Want string
	}{
		{0x1000, 7, "abcdefg"}, {0x1002, 3, "cde"}, {0x1006, 1, "g"}, {0x2000, 3, "klm"},
		{0x1000, 8, ""}, {0xfff, 2, ""}, {0x1007, 1, ""}, {0x2001, 3, ""}, {0x3000, 1, ""}, {0, 1, ""}, {0x1fff, 2, ""}, {1<<64 - 1, 1, ""},
	} {
		b := make([]byte, k.n)
		err := c.ReadMemory(b, k.addr)
		if k.Want == "" {
			require.Equal(t, &machine.MemoryError{Addr: k.addr, Len: k.n, Why: "because", Code: frame.MemoryNotCopied}, err)
			require.Equal(t, make([]byte, k.n), b)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, k.Want, string(b))
	}
}

// TestCopiedJoinsMany requires that the time to join very many adjacent ranges is proportional to their bytes.
func TestCopiedJoinsMany(t *testing.T) {
	var ranges []span
	for i := range 200000 {
		ranges = append(ranges, span{machine.Addr(i * 64), bytes.Repeat([]byte{byte(i)}, 128)})
	}
	c := newCopied(ranges, "")
	require.Len(t, c.ranges, 1)
}

// TestReadMany requires that readMany reads all readable ranges of a batch with more unreadable ranges than one system call accepts.
func TestReadMany(t *testing.T) {
	p := livetest.C(t, "nojit.c", nil)
	maps, err := readMaps(p.PID)
	require.NoError(t, err)
	first := maps[0]
	header := peek(t, p.PID, first.Start, 16)
	var wants []system.Want
	for i := range 5000 {
		w := system.Want{Addr: first.Start, Buf: make([]byte, 16)}
		switch i % 3 {
		case 1:
			w.Addr = 8 // not mapped
		case 2:
			w.Addr = first.Start + machine.Addr(i)%0x100
		}
		wants = append(wants, w)
	}
	require.NoError(t, live(p.PID).readMany(wants))
	page := peek(t, p.PID, first.Start, 0x200)
	for i, w := range wants {
		require.Equal(t, i%3 != 1, w.OK, "%d", i)
		switch i % 3 {
		case 0:
			require.Equal(t, header, w.Buf)
		case 2:
			off := int(w.Addr - first.Start)
			require.Equal(t, page[off:off+16], w.Buf)
		}
	}
	require.ErrorContains(t, live(p.PID).ReadMemory(make([]byte, 16), 8), "16 bytes at 0x8: not mapped")
	require.NoError(t, live(p.PID).ReadMemory(nil, 8))
	// The range extends beyond the end of a mapping.
	last := maps[0].End
	for _, r := range maps {
		if r.Start == last {
			last = r.End
		}
	}
	require.Error(t, live(p.PID).ReadMemory(make([]byte, 16), last-8))
	p.Kill()
	require.Error(t, live(p.PID).ReadMemory(make([]byte, 16), first.Start))
}

func TestDecodeWithoutVectors(t *testing.T) {
	raw := newRawRegisters(machine.AMD64)
	raw.sets[1] = nil
	regs := raw.decode()
	_, err := regs.Bytes(17)
	require.EqualError(t, err, "xmm0: the kernel provided no vector registers")
}
