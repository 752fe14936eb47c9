package livetest

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Terminal returns a pseudo-terminal (pty(7)) that does not change the bytes.
func Terminal(t testing.TB) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	fd := int(master.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	modes, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	require.NoError(t, err)
	modes.Oflag &^= unix.OPOST // otherwise every \n becomes \r\n
	modes.Lflag &^= unix.ECHO
	require.NoError(t, unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, modes))
	return master, slave
}

// transcript collects the output of a process while others read it.
type transcript struct {
	mu   sync.Mutex
	text strings.Builder
}

// fill reads until the terminal has no writer left, which Linux reports as EIO.
func (o *transcript) fill(r *os.File) {
	chunk := make([]byte, 4096)
	for {
		n, err := r.Read(chunk)
		o.mu.Lock()
		o.text.Write(chunk[:n])
		o.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (o *transcript) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
