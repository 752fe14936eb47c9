package ptrace

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// TestShadowStack requires that no shadow stack is found in a process of this machine, and that one is found in the flags that the kernel reports for
// it (Documentation/filesystems/proc.rst of Linux).
func TestShadowStack(t *testing.T) {
	p := livetest.C(t, "threads.c", nil, "1")
	s := open(t, p.PID)
	got, err := s.ShadowStack(p.PID)
	require.NoError(t, err)
	require.False(t, got)
	require.NoError(t, s.Detach())
	_, err = s.ShadowStack(1 << 30)
	require.ErrorIs(t, err, os.ErrNotExist)

	for flags, want := range map[string]bool{
		"rd wr mr mw me ac": false, "rd wr mr mw me ac ss": true, "rd ex ss mr": true, "": false,
	} {
		const line = "7fff00000000-7fff00001000 rw-p 00000000 00:00 0                          [stack]\nSize:                  4 kB\nVmFlags: %s \n"
		got, err := hasShadowStack(strings.NewReader(fmt.Sprintf(line, "rd wr mr") + fmt.Sprintf(line, flags)))
		require.NoError(t, err)
		require.Equal(t, want, got, flags)
	}
	_, err = hasShadowStack(iotest.ErrReader(os.ErrPermission))
	require.ErrorIs(t, err, os.ErrPermission)
}
