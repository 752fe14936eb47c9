//go:build !linux

package dap

import "net"

// PeersKnown reports whether this system reports the user of a connection.
const PeersKnown = false

// SameUser refuses every connection: the user is not known on this system.
func SameUser(*net.TCPConn) error { return &StrangerError{-1} }
