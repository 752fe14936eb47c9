package ptrace

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestSignalName(t *testing.T) {
	for n := 1; n < 32; n++ {
		require.Equal(t, unix.SignalName(syscall.Signal(n)), SignalName(n))
		require.Equal(t, n, SignalNumber(SignalName(n)))
	}
	require.Zero(t, SignalNumber(""))
	require.Zero(t, SignalNumber("SIGNONE"))
	require.Equal(t, "signal 0", SignalName(0))
	require.Equal(t, "signal 40", SignalName(40))
	require.Equal(t, "signal -1", SignalName(-1))
}
