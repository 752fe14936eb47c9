package ptrace

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/system"
	"example.com/reframe/test/livetest"
)

// Lines as proc_pid_maps(5) has them.
func TestParseMaps(t *testing.T) {
	livetest.Slow(t)
	for _, c := range []struct {
		line string
		Want machine.Mapping
	}{
		{"00400000-00452000 r-xp 00000000 08:02 173521                             /usr/bin/dbus-daemon",
			machine.Mapping{Start: 0x400000, End: 0x452000, Read: true, Exec: true, Path: "/usr/bin/dbus-daemon", Inode: 173521}},
		{"35b1a21000-35b1a22000 rw-p 0001f000 08:02 135522                         /usr/lib64/ld-2.15.so",
			machine.Mapping{Start: 0x35b1a21000, End: 0x35b1a22000, Read: true, Write: true, Offset: 0x1f000, Path: "/usr/lib64/ld-2.15.so", Inode: 135522}},
		{"7f1c4bdf2000-7f1c4bdf3000 ---p 00000000 00:00 0 ", machine.Mapping{Start: 0x7f1c4bdf2000, End: 0x7f1c4bdf3000}},
		{"7f1c4bdf2000-7f1c4bdf3000 ---p 00000000 00:00 0", machine.Mapping{Start: 0x7f1c4bdf2000, End: 0x7f1c4bdf3000}},
		{"7fff2d07c000-7fff2d09d000 rw-p 00000000 00:00 0                          [stack]",
			machine.Mapping{Start: 0x7fff2d07c000, End: 0x7fff2d09d000, Read: true, Write: true, Path: "[stack]"}},
		{"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]",
			machine.Mapping{Start: 0xffffffffff600000, End: 0xffffffffff601000, Exec: true, Path: "[vsyscall]"}},
		{"7f0000000000-7f0000001000 rw-s 00000000 00:05 1029                       /dev/zero (deleted)",
			machine.Mapping{Start: 0x7f0000000000, End: 0x7f0000001000, Read: true, Write: true, Share: true, Path: "/dev/zero (deleted)", Inode: 1029}},
		{"7f0000000000-7f0000001000 r-xs 00100000 00:01 9437184                    /memfd:jit code (deleted)",
			machine.Mapping{Start: 0x7f0000000000, End: 0x7f0000001000, Read: true, Exec: true, Share: true, Offset: 1 << 20, Path: "/memfd:jit code (deleted)", Inode: 9437184}},
		{"7f0000000000-7f0000001000 r--p 00000000 08:02 7                          /home/a b/  c: d/lib x.so",
			machine.Mapping{Start: 0x7f0000000000, End: 0x7f0000001000, Read: true, Path: "/home/a b/  c: d/lib x.so", Inode: 7}},
		{"7f0000000000-7f0000001000 rw-p 00000000 00:00 0                          [anon:jit heap]",
			machine.Mapping{Start: 0x7f0000000000, End: 0x7f0000001000, Read: true, Write: true, Path: "[anon:jit heap]"}},
		{"7f0000000000-7f0000001000 r--p ffffffff000 103:05 18446744073709551615    /x",
			machine.Mapping{Start: 0x7f0000000000, End: 0x7f0000001000, Read: true, Offset: 0xffffffff000, Path: "/x", Inode: 1<<64 - 1}},
	} {
		got, err := parseMaps(c.line + "\n")
		require.NoError(t, err, c.line)
		require.Equal(t, []machine.Mapping{c.Want}, got, c.line)
	}
	for _, bad := range []string{
		"\n", "x\n", "00400000 r-xp 00000000 08:02 1 /x\n", "00400000-00452000\n", "00400000-00452000 r-x 00000000 08:02 1\n",
		"00400000-00400000 r-xp 00000000 08:02 1\n", "00452000-00400000 r-xp 00000000 08:02 1\n",
		"0040000g-00452000 r-xp 00000000 08:02 1\n", "00400000-00452000 r-xp 0x0 08:02 1\n", "00400000-00452000 r-xp 0 08:02 -1\n",
		"10000000000000000-10000000000000001 r-xp 0 08:02 1\n",
	} {
		_, err := parseMaps(bad)
		require.Error(t, err, "%q", bad)
	}
	none, err := parseMaps("")
	require.NoError(t, err)
	require.Empty(t, none)

	many, err := parseMaps(strings.Repeat("00400000-00452000 r-xp 00000000 08:02 173521 /usr/bin/x\n", 65530))
	require.NoError(t, err)
	require.Len(t, many, 65530)
	_, err = parseMaps(strings.Repeat("0-1 r-xp 0 0:0 0\n", maxMappings+1))
	require.ErrorContains(t, err, "over 1048576 mappings")
}

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

// Very many ranges that touch are joined in time that grows with their bytes.
func TestCopiedJoinsMany(t *testing.T) {
	var ranges []span
	for i := range 200000 {
		ranges = append(ranges, span{machine.Addr(i * 64), bytes.Repeat([]byte{byte(i)}, 128)})
	}
	c := newCopied(ranges, "")
	require.Len(t, c.ranges, 1)
}

// A batch with more unreadable ranges than one system call accepts.
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
	// A range across the end of a mapping.
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
