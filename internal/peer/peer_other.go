//go:build !linux

package peer

import "net"

// Known reports whether this system reports the user of a connection.
const Known = false

// SameUser refuses every connection: the user is not known on this system.
func SameUser(*net.TCPConn) error { return &StrangerError{-1} }
