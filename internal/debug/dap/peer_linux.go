package dap

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// PeersKnown reports whether this system reports the user of a connection.
const PeersKnown = true

// SameUser returns a [StrangerError] unless the socket at the other end of a connection within this machine belongs to our effective user. It reads
// the owner in the kernel's list of sockets, which the peer cannot change. It returns an error for a connection that is not in the list.
func SameUser(c *net.TCPConn) error {
	theirs, ours := endpoint(c.RemoteAddr()), endpoint(c.LocalAddr())
	for _, name := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		f, err := os.Open(name)
		if err != nil {
			continue // a kernel without IPv6 has no list of its sockets
		}
		uid, found := userOf(f, theirs, ours)
		f.Close()
		switch {
		case found && uid == os.Geteuid():
			return nil
		case found:
			return &StrangerError{uid}
		}
	}
	return &StrangerError{-1}
}

// endpoint returns the address and port of one end of a connection.
func endpoint(a net.Addr) netip.AddrPort {
	at := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}

// established is the state of a connected socket in the kernel's list (include/net/tcp_states.h). For a socket that its process has closed, the
// kernel shows user 0.
const established = "01"

// userOf finds the owner of the connected socket at local, whose peer is remote, in a list as proc_pid_net(5) describes it.
func userOf(list io.Reader, local, remote netip.AddrPort) (uid int, found bool) {
	lines := bufio.NewScanner(list)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 8 || words[3] != established || !is(words[1], local) || !is(words[2], remote) {
			continue
		}
		uid, err := strconv.Atoi(words[7])
		return uid, err == nil
	}
	return 0, false
}

// is reports whether text spells an endpoint: the address as words of the machine's byte order in hexadecimal digits, a colon, the port.
func is(text string, at netip.AddrPort) bool {
	address, port, _ := strings.Cut(text, ":")
	b, err := hex.DecodeString(address)
	number, portErr := strconv.ParseUint(port, 16, 16)
	if err != nil || portErr != nil || len(b)%4 != 0 {
		return false
	}
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 { // little-endian
		for word := range slices.Chunk(b, 4) {
			slices.Reverse(word)
		}
	}
	addr, ok := netip.AddrFromSlice(b)
	return ok && addr.Unmap() == at.Addr() && uint16(number) == at.Port()
}
