package system

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

// TestParseMaps requires that lines in the format of proc_pid_maps(5) are parsed, and that other lines are errors.
func TestParseMaps(t *testing.T) {
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
		got, err := ParseMaps(c.line + "\n")
		require.NoError(t, err, c.line)
		require.Equal(t, []machine.Mapping{c.Want}, got, c.line)
	}
	for _, bad := range []string{
		"\n", "x\n", "00400000 r-xp 00000000 08:02 1 /x\n", "00400000-00452000\n", "00400000-00452000 r-x 00000000 08:02 1\n",
		"00400000-00400000 r-xp 00000000 08:02 1\n", "00452000-00400000 r-xp 00000000 08:02 1\n",
		"0040000g-00452000 r-xp 00000000 08:02 1\n", "00400000-00452000 r-xp 0x0 08:02 1\n", "00400000-00452000 r-xp 0 08:02 -1\n",
		"10000000000000000-10000000000000001 r-xp 0 08:02 1\n",
	} {
		_, err := ParseMaps(bad)
		require.Error(t, err, "%q", bad)
	}
	none, err := ParseMaps("")
	require.NoError(t, err)
	require.Empty(t, none)

	many, err := ParseMaps(strings.Repeat("00400000-00452000 r-xp 00000000 08:02 173521 /usr/bin/x\n", 65530))
	require.NoError(t, err)
	require.Len(t, many, 65530)
	_, err = ParseMaps(strings.Repeat("0-1 r-xp 0 0:0 0\n", MaxMappings+1))
	require.ErrorContains(t, err, "over 1048576 mappings")
}
