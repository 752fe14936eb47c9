package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFramesIn(t *testing.T) {
	for _, c := range []struct {
		what, output string
		want         int
	}{
		{"nothing", "", 0},
		{"gdb, which shows the innermost frame first", "#0  0x01 in pause () from libc.so.6\n\n#0  0x01 in pause ()\n#1  0x02 in f ()\n[Inferior 1 detached]\n", 2},
		{"gdb, beside a line that it cannot show", "0x01 in pause () at pause.c:29\n29\tpause.c: No such file\n#0  0x01 in pause ()\n#10 0x02 in f ()\n", 2},
		{"eu-stack", "PID 7 - process\nTID 7:\n#0  0x01 pause\n#1  0x02\neu-stack: dwfl_thread_getframes tid 7 at 0x02\n", 2},
		{"a frame without the first", "#1  0x02\n", 0},
	} {
		require.Len(t, framesIn([]byte(c.output)), c.want, c.what)
	}
}

func TestPerFrame(t *testing.T) {
	require.Equal(t, "0.47 µs (0.30 µs to 12.50 µs)", perFrame(times{300, 12500, 470 * time.Nanosecond}))
}
