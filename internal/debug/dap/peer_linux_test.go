package dap

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSameUser(t *testing.T) {
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", at)
		require.NoError(t, err)
		mine, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		c, err := l.Accept()
		require.NoError(t, err)
		require.NoError(t, SameUser(c.(*net.TCPConn)))
		require.NoError(t, mine.Close())
		// The socket is no longer connected, and the kernel then lists it without its user.
		require.EqualError(t, SameUser(c.(*net.TCPConn)), "cannot determine the user of this connection; with --from-anywhere a token replaces the user")
		c.Close()
		l.Close()
	}
}

// TestUserOf uses lines in the format of proc_pid_net(5) on a little-endian machine.
func TestUserOf(t *testing.T) {
	const list = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     7        0 1 1 0
   1: 0100007F:C350 0100007F:1F90 06 00000000:00000000 03:00000000 00000000     0        0 0 3 0
   2: 0100007F:C351 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 2 1 0
   3: 0000000000000000FFFF00000100007F:C352 0000000000000000FFFF00000100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 3 1 0
   4: x
   5: 0100007F:C353 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  -  0 2 1 0
`
	server := netip.MustParseAddrPort("127.0.0.1:8080")
	for port, want := range map[uint16]int{50000: -1, 50001: 1000, 50002: 1001, 50003: -1, 50004: -1} {
		uid, found := userOf(strings.NewReader(list), netip.AddrPortFrom(server.Addr(), port), server)
		if !found {
			uid = -1
		}
		require.Equal(t, want, uid, port)
	}
}
